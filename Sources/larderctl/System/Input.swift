// Reads values that are not given on the command line.

import LarderClient
import LarderPlatform

/// Reads a whole file or all of standard input.
enum Input {
    /// The maximum length of a value that the daemon accepts, in bytes.
    static let bytesMax = 536_870_912

    static func standardInput() throws(InputOutputError) -> [UInt8] {
        try readAll(STDIN_FILENO, "standard input")
    }

    static func file(_ path: String) throws(InputOutputError) -> [UInt8] {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            throw InputOutputError(message: "\(path) could not be opened: \(SystemErrorText.of(errno))")
        }
        defer { close(descriptor) }
        return try readAll(descriptor, path)
    }

    private static func readAll(_ descriptor: CInt, _ name: String) throws(InputOutputError) -> [UInt8] {
        var bytes: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = Descriptor.read(descriptor, &piece, piece.count)
            if count == 0 { return bytes }
            guard count > 0 else {
                throw InputOutputError(message: "\(name) could not be read: \(SystemErrorText.of(errno))")
            }
            guard bytes.count + count <= bytesMax else {
                throw InputOutputError(message: "\(name) has more than \(bytesMax) bytes, the limit of a value")
            }
            bytes.append(contentsOf: piece[..<count])
        }
    }
}
