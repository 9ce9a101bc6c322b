import LarderEngine
import LarderRESP

extension Session {
    /// Replies with the values of the fresh entries of several keys at one instant; null for a key without one. Reads
    /// only memory. Used by MGET, on the fast path and elsewhere.
    /// - Parameters:
    ///   - key: returns the bytes of one of the `count` keys, which must be valid during the call, and not longer than
    ///     a key may be.
    ///   - seen: called with the header of each entry that was found.
    /// - Returns: false if the disk is needed or a value is long; then nothing was replied.
    @inline(__always)
    func replyWithValuesInMemory(
        _ database: Database, _ count: Int, _ now: Int64, _ ticket: inout CommitTicket,
        key: (Int) -> UnsafeRawBufferPointer, seen: (Int, RecordHeader) -> Void
    ) -> Bool {
        let replies = replyMemory
        let bytesMax = min(Limits.loopBytesMax, server.limits.replyBytesMax)
        let entries = Update.take()
        defer { entries.giveBack() }
        for index in 0..<count { entries.addUnchecked(key(index)) }
        return database.withBatch(entries, now: now, writes: false, ticket: &ticket) { entries in
            guard entries.payloadBytes <= bytesMax else { return false }
            replies.pointee.array(count: count)
            for index in 0..<count {
                guard let payload = entries.read(index), let header = entries.header(index) else {
                    replies.pointee.null()
                    continue
                }
                replies.pointee.bulk(payload)
                seen(index, header)
            }
            return true
        }
    }
}
