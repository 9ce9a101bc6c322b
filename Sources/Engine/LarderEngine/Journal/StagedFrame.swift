import LarderPlatform

/// The payload of one long record, written into a file of the journal before its commit, so that other commits do not
/// wait for the disk.
///
/// The file will become a segment. The commit writes the bytes before the payload (two headers and the key) and renames
/// the file to a segment's name, so it costs as little as for a short record. The file's format is that of any segment.
/// A file that does not become a segment is removed.
///
/// `@unchecked Sendable`: mutable state belongs to one thread at a time, first the thread that writes the file, then
/// the thread that commits.
final class StagedFrame: @unchecked Sendable {
    let path: String
    let byteCount: Int
    /// CRC-32C of the payload alone.
    let checksum: UInt32
    /// The number of bytes in the frame's payload before the payload of the record.
    let bytesBefore: Int
    private var file: Int32

    init(path: String, file: Int32, byteCount: Int, checksum: UInt32, bytesBefore: Int) {
        self.path = path
        self.file = file
        self.byteCount = byteCount
        self.checksum = checksum
        self.bytesBefore = bytesBefore
    }

    deinit {
        guard file >= 0 else { return }
        close(file)
        remove(path)
    }

    /// Returns the file, open for writing, to be closed by the caller; -1 if it was taken before.
    func takeFile() -> Int32 {
        defer { file = -1 }
        return file
    }

    var descriptor: Int32 { file }

    static func name(_ number: Int) -> String { "ahead-\(number).new" }

    /// Whether a file name is that of a staged payload.
    static func isName(_ name: String) -> Bool { name.hasPrefix("ahead-") && name.hasSuffix(".new") }
}
