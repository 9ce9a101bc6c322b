/// What users of the engine keep beside entries in memory: see ``Attachment``.
///
/// An attachment goes with its entry: with any write, removal, purge, eviction or damage, from anywhere in the process.
/// One whose entry has expired is not handed out. Together they take at most half of the memory budget, those beside
/// entries that cannot be evicted included.
///
/// What an entry lets go is not released there, where locks are held, but by the next ``releaseDetached()``.
extension Database {
    /// Hands over the attachment of the fresh entry of a key.
    /// - Parameters:
    ///   - ticket: raised to what the answer has to wait for, if there is one.
    ///   - body: called at most once; not when there is no attachment, or the entry is not in memory. The shard's
    ///     lock is held meanwhile: take what is needed, call nothing of the engine. Says whether it was of use.
    /// - Returns: whether `body` was called and found the attachment of use.
    package func readAttached(
        _ key: UnsafeRawBufferPointer, now: Int64, ticket: inout CommitTicket, _ body: (Attachment) -> Bool
    ) -> Bool {
        if ForkGuard.isForked { return false }
        let hash = Key.hash(key)
        return shards.with(hash) { shard in
            shard.lock.lock()
            defer { shard.lock.unlock() }
            guard case .open = applied.presence, let entry = shard.table.find(key, hash: hash),
                let attachment = entry.head.pointee.attachment, let record = entry.record,
                let header = try? RecordHeader(parsing: record), applied.rules.freshness(header, now: now) == .fresh,
                // Held by the entry, which nobody changes while the lock is held.
                attachment._withUnsafeGuaranteedRef({ attachment in
                    guard body(attachment) else { return false }
                    attachment.touch()
                    return true
                })
            else { return false }
            ticket = max(ticket, CommitTicket(sequence: max(undecided(entry), applied.sequence)))
            shard.table.touch(entry)
            shard.counters.hits += 1
            return true
        }
    }

    /// Attaches something to the entry of a key, in place of another, unless the entry has changed or left memory, or the
    /// attachment is too large to be kept.
    /// - Parameter version: of the entry, as ``readInMemory(_:now:below:ticket:_:)`` gave it.
    package func attach(_ attachment: Attachment, to key: UnsafeRawBufferPointer, version: UInt64) {
        let hash = Key.hash(key)
        let shard = shards[Shard.index(hash)]
        shard.lock.withLock {
            guard let entry = shard.table.find(key, hash: hash) else { return }
            shard.attach(attachment, to: entry, version: version)
        }
    }

    /// The largest attachment that is kept, in bytes: a 32nd of the memory budget; 0 where there is none.
    package var attachmentBytesMax: Int { context.memory.limitBytes / 32 }

    /// Releases what entries of the larder have let go. Their deinitializers may call the engine: to be called with no lock
    /// held, at the end of a call. Costs one load where there is nothing.
    package func releaseDetached() { context.memory.released.release() }
}
