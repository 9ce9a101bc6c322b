import TestSupport

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

extension TemporaryDirectory {
    func file(_ name: String) -> String { path + "/" + name }

    /// Makes a file. Returns its path.
    func makeFile(_ name: String, _ bytes: [UInt8]) throws -> String {
        let file = file(name)
        let descriptor = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw SystemCallFailure(call: "open", number: errno) }
        defer { close(descriptor) }
        var start = 0
        while start < bytes.count {
            let count = bytes.withUnsafeBytes { write(descriptor, $0.baseAddress.map { $0 + start }, $0.count - start) }
            guard count > 0 else { throw SystemCallFailure(call: "write", number: errno) }
            start += count
        }
        return file
    }
}

/// A system call that a test needs did not work.
struct SystemCallFailure: Error {
    let call: String
    let number: CInt
}

/// Reading descriptors and files to their end.
enum Reading {
    static func all(_ file: String) throws -> [UInt8] {
        let descriptor = open(file, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw SystemCallFailure(call: "open", number: errno) }
        defer { close(descriptor) }
        return all(descriptor)
    }

    /// Everything from a descriptor to its end. A terminal whose other side is gone counts as ended.
    static func all(_ descriptor: CInt) -> [UInt8] {
        var bytes: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = read(descriptor, &piece, piece.count)
            guard count > 0 else { return bytes }
            bytes.append(contentsOf: piece[..<count])
        }
    }
}
