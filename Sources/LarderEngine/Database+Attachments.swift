/// Objects that a user of the engine keeps beside entries in the memory tier: what was made of a value with some effort.
///
/// An object goes with its entry: with any write, removal, purge, eviction or damage, from anywhere in the process. One
/// whose entry has expired is not handed out.
extension Database {
    /// The object attached to the fresh entry of a key; nil when there is none, or the entry is not in the memory tier.
    /// - Parameter ticket: raised to what the answer has to wait for, if there is one.
    package func readAttached(_ key: UnsafeRawBufferPointer, now: Int64, ticket: inout CommitTicket) -> AnyObject? {
        if ForkGuard.isForked { return nil }
        let key = Key(key)
        let shard = shard(shardIndex(key))
        shard.lock.lock()
        defer { shard.lock.unlock() }
        let state = applied
        guard case .open = state.presence, shard.overlay[key] == nil,
            let (object, header) = shard.tier.findAttached(key),
            state.rules.freshness(header, now: now) == .fresh
        else { return nil }
        ticket = max(ticket, CommitTicket(sequence: state.sequence))
        context.statistics.hits.add()
        return object
    }

    /// Attaches an object to the entry of a key, in place of another, unless the entry has changed or left the memory tier.
    /// - Parameters:
    ///   - version: of the entry, as ``readQuickly(_:now:ticket:_:)`` gave it.
    ///   - bytes: that the object takes; they count against the memory budget.
    package func attach(_ object: AnyObject, to key: UnsafeRawBufferPointer, version: UInt64, bytes: Int) {
        let key = Key(key)
        let shard = shard(shardIndex(key))
        shard.lock.withLock { shard.attach(object, to: key, version: version, bytes: bytes) }
    }
}
