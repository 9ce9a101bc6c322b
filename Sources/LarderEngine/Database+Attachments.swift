/// Objects that a user of the engine keeps beside entries in memory: what was made of a value with some effort.
///
/// The objects are let go with a shard locked: what their deinitializers do must not come back to the engine.
///
/// An object goes with its entry: with any write, removal, purge, eviction or damage, from anywhere in the process. One
/// whose entry has expired is not handed out.
extension Database {
    /// The object attached to the fresh entry of a key; nil when there is none, or the entry is not in memory.
    /// - Parameter ticket: raised to what the answer has to wait for, if there is one.
    package func readAttached(_ key: UnsafeRawBufferPointer, now: Int64, ticket: inout CommitTicket) -> AnyObject? {
        if ForkGuard.isForked { return nil }
        let hash = Key.hash(key)
        return withShard(hash) { shard in
            shard.lock.withLock {
                guard case .open = applied.presence, let entry = shard.table.find(key, hash: hash),
                    let object = entry.head.pointee.attachment?.takeUnretainedValue(), let record = entry.record,
                    let header = try? RecordHeader(parsing: record), applied.rules.freshness(header, now: now) == .fresh
                else { return nil }
                ticket = max(ticket, CommitTicket(sequence: max(undecided(entry), applied.sequence)))
                shard.table.touch(entry)
                shard.counters.hits += 1
                return object
            }
        }
    }

    /// Attaches an object to the entry of a key, in place of another, unless the entry has changed or left memory.
    /// - Parameters:
    ///   - version: of the entry, as ``readQuickly(_:now:ticket:_:)`` gave it.
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
