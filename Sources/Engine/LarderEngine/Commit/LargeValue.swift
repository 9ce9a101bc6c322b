/// A long value before its commit. Its bytes are written to the journal's directory and to the memory of an entry
/// before any lock is taken. So its commit does not delay other commits.
///
/// Used for one update. If it is not committed, its file is removed and its memory is freed. `@unchecked Sendable`: it
/// belongs to the thread that stores it, until the entry is taken.
package final class LargeValue: @unchecked Sendable {
    let key: Key
    /// The length of the record's header, which precedes the value.
    let headerCount: Int
    let staged: StagedFrame
    private var entry: EntryPointer?

    init(_ key: Key, headerCount: Int, _ payload: UnsafeRawBufferPointer, _ staged: StagedFrame) {
        self.key = key
        self.headerCount = headerCount
        self.staged = staged
        // The block has space for the packed record, which is as stored, with one byte in front of it.
        let count = 1 + headerCount + payload.count
        let entry = key.withBytes { EntryBlock.make($0, recordCount: count) }
        let place = PackedRecord.beginStored(at: entry.recordPlace)
        if let start = payload.baseAddress { (place + headerCount).copyMemory(from: start, byteCount: payload.count) }
        self.entry = entry
    }

    deinit { if let entry { EntryBlock.free(entry) } }

    /// Writes the header, and returns the entry. Call it only once.
    func take(_ header: RecordHeader) -> EntryPointer {
        guard let entry, header.byteCount == headerCount else {
            preconditionFailure("a long value is stored once, with the header it was made for")
        }
        header.write(to: PackedRecord.beginStored(at: entry.recordPlace))
        self.entry = nil
        return entry
    }
}
