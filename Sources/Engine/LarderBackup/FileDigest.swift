import CLarderCRC32C
import LarderPlatform

/// The length of a file and the CRC-32C (RFC 3720) of its bytes. It detects accidental damage, but not deliberate
/// changes.
struct FileDigest: Equatable {
    let checksum: UInt32
    let byteCount: Int

    private static let chunkBytes = 1 << 20

    /// Reads a file, and passes each piece of at most 1 MiB to `body`. Does not follow symbolic links.
    /// - Throws: an error with the number `ELOOP` for a symbolic link, `EISDIR` for a directory, and `ENXIO` for
    ///   anything else that is not a regular file.
    static func read(
        _ path: String, _ body: (UnsafeRawBufferPointer) throws(FileError) -> Void = { _ in }
    ) throws(FileError) -> FileDigest {
        let file = FileSystem.openFile(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        guard file >= 0 else { throw FileError(operation: "open", path: path, number: errno) }
        defer { close(file) }
        var status = stat()
        guard fstat(file, &status) == 0 else { throw FileError(operation: "stat", path: path, number: errno) }
        let kind = status.st_mode & S_IFMT
        guard kind == S_IFREG else {
            throw FileError(operation: "read", path: path, number: kind == S_IFDIR ? EISDIR : ENXIO)
        }
        let chunk = UnsafeMutableRawBufferPointer.allocate(byteCount: chunkBytes, alignment: 16)
        defer { chunk.deallocate() }
        var byteCount = 0
        var checksum: UInt32 = 0
        while true {
            let count = systemRead(file, chunk.baseAddress, chunk.count)
            if count == 0 { break }
            if count < 0 {
                if errno == EINTR { continue }
                throw FileError(operation: "read", path: path, number: errno)
            }
            let piece = UnsafeRawBufferPointer(rebasing: chunk[..<count])
            checksum = larder_crc32c_extend(checksum, piece.baseAddress, piece.count)
            byteCount += count
            try body(piece)
        }
        return FileDigest(checksum: checksum, byteCount: byteCount)
    }

    /// Copies a file to a new one, and syncs it.
    static func copy(_ path: String, to other: String) throws(FileError) -> FileDigest {
        let file = FileSystem.openFile(other, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard file >= 0 else { throw FileError(operation: "create", path: other, number: errno) }
        defer { close(file) }
        let result = try read(path) { (piece) throws(FileError) in
            try FileSystem.writeAll(Array(piece), descriptor: file, path: other)
        }
        guard fsync(file) == 0 else { throw FileError(operation: "fsync", path: other, number: errno) }
        return result
    }

    /// The checksum as 8 hexadecimal digits.
    var text: String { checksum.zeroPadded(8, radix: 16) }

    private init(checksum: UInt32, byteCount: Int) { (self.checksum, self.byteCount) = (checksum, byteCount) }

    /// Computes the digest of a text.
    init(of text: String) {
        var text = text
        let checksum = text.withUTF8 { larder_crc32c_extend(0, $0.baseAddress, $0.count) }
        self.init(checksum: checksum, byteCount: text.utf8.count)
    }

    /// Parses a checksum of 8 hexadecimal digits.
    init?(_ text: Substring, byteCount: Int) {
        guard text.utf8.count == 8, let checksum = UInt32(text, radix: 16) else { return nil }
        self.init(checksum: checksum, byteCount: byteCount)
    }
}
