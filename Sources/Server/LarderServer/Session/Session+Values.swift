import LarderEngine
import LarderRESP

extension Session {
    /// Replies with the payloads of the fresh entries of several keys at one instant, or null for each that has none, if memory
    /// can tell. What is long is copied where nobody waits for it. MGET's, on the fast path and beside it.
    /// - Parameters:
    ///   - key: the bytes of each of `count` keys, valid during the call.
    ///   - seen: hears of each entry that is there.
    /// - Returns: `.cold`, and then nothing was replied, or `.hit`.
    @inline(__always)
    func replyWithValuesInMemory(
        _ database: Database, _ count: Int, _ now: Int64, _ ticket: inout CommitTicket,
        key: (Int) -> UnsafeRawBufferPointer, seen: (Int, RecordHeader) -> Void
    ) throws(LarderError) -> MemoryRead {
        let replies = replyMemory
        return try database.readManyInMemory(
            count: count, key: key, now: now, below: min(Limits.loopBytesMax, server.limits.replyBytesMax),
            ticket: &ticket
        ) { index, entry in
            if index == 0 { replies.pointee.array(count: count) }
            guard let entry else { return replies.pointee.null() }
            replies.pointee.bulk(entry.payload)
            seen(index, entry.header)
        }
    }
}
