/// Objects that users of the engine attach to entries in memory: see ``Attachment``.
///
/// An attachment is dropped when any part of the process writes, removes, purges or evicts its entry, or finds it
/// damaged. The attachment of an expired entry is not returned. All attachments together, including those of entries
/// that cannot be evicted, take at most half of the memory budget.
///
/// The next ``releaseDetached()`` releases the dropped attachments. They are not released at once, because locks are
/// held when they are dropped.
extension Database {
    /// Passes the attachment of a key's fresh entry to `body`.
    /// - Parameters:
    ///   - ticket: raised to cover the commits that the reply has to wait for, if there is an attachment.
    ///   - endsSoon: if the result is true, set to whether the entry expires soon and should be refetched.
    ///   - body: called once if the entry is in memory and has an attachment; otherwise not called. Called with the
    ///     shard's lock held: copy the data that you need, and do not call the engine. Returns whether it used the
    ///     attachment.
    /// - Returns: whether `body` was called and returned true.
    package func readAttached(
        _ key: UnsafeRawBufferPointer, now: Int64, ticket: inout CommitTicket,
        endsSoon: UnsafeMutablePointer<Bool>? = nil, _ body: (Attachment) -> Bool
    ) -> Bool {
        if ForkGuard.isForked { return false }
        let hash = Key.hash(key)
        return shards.with(hash) { shard in
            shard.lock.lock()
            defer { shard.lock.unlock() }
            guard case .open = applied.presence, let entry = shard.table.find(key, hash: hash),
                let attachment = entry.head.pointee.attachment, let record = entry.record,
                let header = try? RecordHeader(parsing: record, applied.rules.purges),
                applied.rules.freshness(header, now: now) == .fresh,
                // Safe without counting references: the entry retains the attachment, and the lock protects the entry.
                attachment._withUnsafeGuaranteedRef({ attachment in
                    guard body(attachment) else { return false }
                    attachment.touch()
                    return true
                })
            else { return false }
            ticket = max(ticket, CommitTicket(sequence: max(undecided(entry), applied.sequence)))
            shard.table.touch(entry)
            shard.counters.hits += 1
            endsSoon?.pointee = self.endsSoon(header, applied.rules, shard, hash, now)
            return true
        }
    }

    /// Attaches an object to the entry of a key, replacing any earlier attachment. Does nothing if the entry has
    /// changed or left memory, or the attachment is too large.
    /// - Parameter version: the entry's version from ``read(_:now:_:below:fillCache:ticket:holding:_:)``.
    package func attach(_ attachment: Attachment, to key: UnsafeRawBufferPointer, version: UInt64) {
        let hash = Key.hash(key)
        let shard = shards[Shard.index(hash)]
        shard.lock.withLock {
            guard let entry = shard.table.find(key, hash: hash) else { return }
            shard.attach(attachment, to: entry, version: version)
        }
    }

    /// The maximum size of an attachment in bytes, a fraction of the memory budget; 0 without a budget.
    package var attachmentBytesMax: Int { context.memory.largestBytes }

    /// Releases the larder's dropped attachments. Call it after an operation, with no lock held, because the
    /// deinitializers of attachments may call the engine. Costs one atomic load if there are none.
    package func releaseDetached() { context.memory.released.release() }
}
