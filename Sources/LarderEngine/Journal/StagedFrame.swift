import Platform

/// The payload of one long record, written into a file of the journal before its commit: so that those who commit meanwhile
/// do not wait until the disk has taken it.
///
/// The file is to become a segment. What stands before the payload there, two headers and the key, is written when the record
/// is committed, and then the file gets its name as a segment: what is committed late costs as little as a short record.
/// Nothing of it shows in the format. A file that does not become a segment is removed.
///
/// The proof for `@unchecked Sendable`: what changes belongs to one thread at a time, that which writes it and then the one
/// that commits.
final class StagedFrame: @unchecked Sendable {
    let path: String
    let byteCount: Int
    /// CRC-32C of the payload alone.
    let checksum: UInt32
    /// What has to stand before it in the frame's payload.
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

    /// The file, open for writing, which the caller closes from now on; -1 when it was taken before.
    func takeFile() -> Int32 {
        defer { file = -1 }
        return file
    }

    var descriptor: Int32 { file }

    static func name(_ number: Int) -> String { "ahead-\(number).new" }

    /// Whether a file of this name was written ahead.
    static func isName(_ name: String) -> Bool { name.hasPrefix("ahead-") && name.hasSuffix(".new") }
}
