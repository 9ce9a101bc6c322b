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

// MARK: Several keys

extension Database {
    /// A fresh entry in memory. Valid while the locks are held.
    package struct EntryInMemory {
        package let header: RecordHeader
        package let payload: UnsafeRawBufferPointer
        /// What is kept beside it. Whoever makes use of that says so by ``Attachment/touch()``.
        package let attachment: Attachment?
        /// By which something can be attached to it.
        package let version: UInt64
    }

    /// Reads several keys at one instant, with what is attached to their entries, if that can be done without the disk.
    /// - Parameters:
    ///   - ticket: raised to what the answer has to wait for.
    ///   - body: called once for each key in their order, with its fresh entry or nil, unless the result is cold. Locks
    ///     are held meanwhile: copy what is needed, call nothing of the engine.
    /// - Returns: `.cold`, and then `body` was not called, or `.hit`.
    package func readManyInMemory(
        _ keys: [Key], now: Int64, ticket: inout CommitTicket, _ body: (Int, EntryInMemory?) -> Void
    ) throws(LarderError) -> MemoryRead {
        try ForkGuard.check("get")
        let locked = DatabaseShards.set(of: keys)
        return withUnsafeTemporaryAllocation(of: EntryPointer?.self, capacity: keys.count) { entries in
            shards.lock(locked)
            defer { shards.unlock(locked) }
            var sequence = applied.sequence
            guard findInMemory(keys, entries, &sequence) else { return .cold }
            ticket = max(ticket, CommitTicket(sequence: sequence))
            for index in keys.indices { body(index, handOverInMemory(entries[index], keys[index].hash, now)) }
            return .hit
        }
    }

    /// Finds every key, with the locks held of all their shards.
    /// - Returns: false when only the disk can tell of one, or one cannot be read, which the slow way complains of.
    private func findInMemory(
        _ keys: [Key], _ entries: UnsafeMutableBufferPointer<EntryPointer?>, _ sequence: inout UInt64
    ) -> Bool {
        entries.initialize(repeating: nil)
        switch applied.presence {
        case .absent: return true
        case .open: break
        case .closed, .failed, .deleted, .shut: return false
        }
        for index in keys.indices {
            fetchAhead(keys, index)
            guard let entry = shards.with(keys[index].hash, { $0.find(keys[index]) }) else { return false }
            sequence = max(sequence, undecided(entry))
            if let record = entry.record, (try? RecordHeader(parsing: record)) == nil { return false }
            entries[index] = entry
        }
        return true
    }

    private func handOverInMemory(_ entry: EntryPointer?, _ hash: Int, _ now: Int64) -> EntryInMemory? {
        shards.with(hash) { shard in
            guard let entry, let record = entry.record, let header = try? RecordHeader(parsing: record),
                applied.rules.freshness(header, now: now) == .fresh
            else {
                shard.counters.misses += 1
                return nil
            }
            shard.table.touch(entry)
            shard.counters.hits += 1
            return EntryInMemory(
                header: header, payload: UnsafeRawBufferPointer(rebasing: record[header.byteCount...]),
                attachment: entry.head.pointee.attachment?.takeUnretainedValue(), version: entry.head.pointee.version)
        }
    }
}
