extension Database {
    /// Answers a caller that fetches a value from its origin if there is no fresh one. The answer is a fresh or stale
    /// value, a lease, or the information that another caller has the lease.
    ///
    /// Only one caller at a time gets the lease of a key. Shortly before an entry expires, one caller gets the lease
    /// early, while the others are served. Only this function grants leases.
    /// - Parameters:
    ///   - bytesMax: with `memoryOnly`, nothing is done for entries with payloads of this many bytes or more.
    ///   - ticket: raised to cover the commits that the reply has to wait for.
    ///   - body: called once, with the payload if there is a value, fresh or stale. A shard's lock may be held: copy
    ///     the data that you need, and do not call the engine.
    /// - Returns: whether `body` was called; false only with `memoryOnly`, if the entry is long or the disk is needed.
    /// - Throws: `tooManyLeases`, and the errors of reads.
    package func fetch(
        _ request: FetchRequest, now: Int64, _ access: Access, below bytesMax: Int = .max,
        ticket: inout CommitTicket, _ body: (FetchAnswer, UnsafeRawBufferPointer?) -> Void
    ) throws(LarderError) -> Bool {
        try ForkGuard.check("fetch")
        let update = Update.take()
        defer { update.giveBack() }
        update.add([request.key], areDistinct: true)
        update.prepare(self, now: now, .records)
        let done = try Executor.run(update.alone, access) {
            (sequence, _) throws(LarderError) -> Bool? in
            let payload = update.storedPayload(0)
            if access == .memoryOnly, let payload, payload.count >= bytesMax { return nil }
            ticket = max(ticket, CommitTicket(sequence: sequence))
            let answer = try leases.answer(request, update.storedHeader(0), now) { update.tagHashes(0) }
            if answer.header != nil { update.touch(0) }
            body(answer, answer.header == nil ? nil : payload)
            return true
        }
        return done ?? false
    }
}
