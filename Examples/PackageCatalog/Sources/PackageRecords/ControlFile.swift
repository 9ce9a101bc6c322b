#if canImport(Glibc)
    import Glibc
#else
    import Darwin
#endif

/// Reads the records of a file or a pipe.
public enum ControlFile {
    /// The error that the operating system reported.
    public struct Failure: Error, CustomStringConvertible {
        public let description: String
    }

    /// Calls `body` with every record, and with the problems of records that cannot be parsed.
    /// - Parameter path: a path, or `-` for standard input.
    /// - Returns: the number of bytes read.
    @discardableResult
    public static func read(_ path: String, _ body: (ControlParser.Step) throws -> Void) throws -> Int {
        let descriptor = path == "-" ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw Failure(description: "\(path): \(String(cString: strerror(errno)))") }
        defer { if path != "-" { close(descriptor) } }
        var parser = ControlParser()
        var bytes = 0
        var chunk = [UInt8](repeating: 0, count: 1 << 18)
        var isAtEnd = false
        while !isAtEnd {
            let count = chunk.withUnsafeMutableBytes { systemRead(descriptor, $0) }
            guard count >= 0 else { throw Failure(description: "\(path): \(String(cString: strerror(errno)))") }
            if count == 0 {
                parser.finish()
                isAtEnd = true
            } else {
                bytes += count
                parser.append(chunk[..<count])
            }
            steps: while true {
                let step = parser.next()
                if case .needsMore = step { break steps }
                try body(step)
            }
        }
        return bytes
    }

    /// Calls `read(2)`, and repeats the call if a signal interrupted it.
    private static func systemRead(_ descriptor: CInt, _ buffer: UnsafeMutableRawBufferPointer) -> Int {
        while true {
            #if canImport(Glibc)
                let count = Glibc.read(descriptor, buffer.baseAddress, buffer.count)
            #else
                let count = Darwin.read(descriptor, buffer.baseAddress, buffer.count)
            #endif
            if count >= 0 || errno != EINTR { return count }
        }
    }
}
