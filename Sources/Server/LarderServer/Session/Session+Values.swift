import LarderEngine
import LarderRESP

extension Session {
    /// Replies from memory with the payloads of the fresh entries of several keys at one instant, or null for a key
    /// without an entry. Leaves long values to another thread. For MGET, on the fast path and elsewhere.
    /// - Parameters:
    ///   - key: the bytes of each of `count` keys, valid during the call.
    ///   - seen: called with each entry that exists.
    /// - Returns: `.hit`, or `.cold` if the disk is needed, and nothing was replied.
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
