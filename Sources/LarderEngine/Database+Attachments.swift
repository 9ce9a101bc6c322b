/// Objects that a user of the engine keeps beside entries in memory: what was made of a value with some effort.
///
/// The objects are let go with a shard locked: what their deinitializers do must not come back to the engine.
///
/// An object goes with its entry: with any write, removal, purge, eviction or damage, from anywhere in the process. One
/// whose entry has expired is not handed out.
extension Database {
    /// Hands over the object attached to the fresh entry of a key.
    /// - Parameters:
    ///   - ticket: raised to what the answer has to wait for, if there is one.
    ///   - body: called at most once, with the object; not when there is none, or the entry is not in memory. The shard's
    ///     lock is held meanwhile: take what is needed, call nothing of the engine. Says whether the object was of use.
    /// - Returns: whether `body` was called and found the object of use.
    package func readAttached(
        _ key: UnsafeRawBufferPointer, now: Int64, ticket: inout CommitTicket, _ body: (AnyObject) -> Bool
    ) -> Bool {
        if ForkGuard.isForked { return false }
        let hash = Key.hash(key)
        return withShard(hash) { shard in
            shard.lock.lock()
            defer { shard.lock.unlock() }
            guard case .open = applied.presence, let entry = shard.table.find(key, hash: hash),
                let attachment = entry.head.pointee.attachment, let record = entry.record,
                let header = try? RecordHeader(parsing: record), applied.rules.freshness(header, now: now) == .fresh,
                // Held by the entry, which nobody changes while the lock is held.
                attachment._withUnsafeGuaranteedRef(body)
            else { return false }
            ticket = max(ticket, CommitTicket(sequence: max(undecided(entry), applied.sequence)))
            shard.table.touch(entry)
            shard.counters.hits += 1
            return true
        }
    }

    /// Attaches an object to the entry of a key, in place of another, unless the entry has changed or left memory.
    /// - Parameters:
    ///   - version: of the entry, as ``readQuickly(_:now:below:ticket:_:)`` gave it.
    ///   - bytes: that the object takes; they count against the memory budget.
    package func attach(_ object: AnyObject, to key: UnsafeRawBufferPointer, version: UInt64, bytes: Int) {
        let hash = Key.hash(key)
        let shard = shard(Shard.index(hash))
        shard.lock.withLock {
            guard let entry = shard.table.find(key, hash: hash) else { return }
            shard.attach(object, to: entry, version: version, bytes: bytes)
        }
    }
}
