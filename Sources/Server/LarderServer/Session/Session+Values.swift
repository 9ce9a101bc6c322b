import LarderEngine
import LarderRESP

extension Session {
    /// Replies from memory with the payloads of the fresh entries of several keys at one instant, or null for a key
    /// without an entry. Leaves long values to another thread. For MGET, on the fast path and elsewhere.
    /// - Parameters:
    ///   - key: the bytes of each of `count` keys, valid during the call, and not longer than a key may be.
    ///   - seen: called with each entry that exists.
    /// - Returns: false if the disk is needed, and nothing was replied.
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
