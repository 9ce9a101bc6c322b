extension Database {
    /// Runs one command on `keys`: all its reads and writes happen at one instant, and its writes are one commit unit.
    ///
    /// Looks in memory first, with the shard locks held. If entries are not in memory, unlocks the shards, reads these
    /// entries from the disk, and locks the shards again. Repeats the reads of keys that were changed in the meantime.
    ///
    /// - Parameters:
    ///   - keys: every key that the command reads or writes.
    ///   - loading: the parts of the entries that `body` reads. Without `records`, payloads read from the disk are not
    ///     kept in memory, however many and large they are.
    ///   - access: whether the command may read the disk and open files.
    ///   - now: the command's time.
    ///   - durability: the durability of the writes; nil for the larder's durability.
    ///   - fillCache: whether blocks that are read from the disk stay in LevelDB's block cache.
    ///   - needsFiles: whether `body` runs only if the database's files are open.
    ///   - version: the version of the change, if `body` applies a change from another larder. Later commits get later
    ///     versions than this version. If changes have subscribers, the command first waits, a limited number of times,
    ///     until earlier changes of the keys are committed: only then are their versions known.
    ///   - body: called once with the locks held. It must be short, must not block, and must not call the engine. If it
    ///     throws, everything is undone.
    /// - Returns: the ticket that the reply has to wait for; nil, without an effect, if `access` forbids using the
    ///   disk, or the command needs files that are not open.
    package func perform(
        _ keys: [Key], _ loading: Loading, _ access: Access, now: Int64, durability: Durability? = nil,
        fillCache: Bool = true, needsFiles: Bool = false, observing version: ChangeVersion? = nil,
        _ body: (inout Update) throws(LarderError) -> Void
    ) throws(LarderError) -> CommitTicket? {
        try ForkGuard.check("update")
        fillHintsBeforeWrite()
        let settles = version != nil && context.changes.isOn
        if settles, let version { context.changeLog.observe(version, in: self) }
        var update = Update.take()
        defer { update.giveBack() }
        update.add(keys, areDistinct: loading == .none)
        update.prepare(self, now: now, loading, fillCache: fillCache)
        let end = try Executor.run(update.alone, access, drains: settles) {
            (sequence, attempt) throws(LarderError) -> CommitTicket?? in
            if needsFiles, isWithoutFiles { return .some(nil) }
            if settles, attempt < Self.settlingAttempts, keys.contains(where: isUndecided) { return nil }
            update.observes = settles
            try body(&update)
            guard update.hasChanges else { return CommitTicket(sequence: sequence) }
            return CommitTicket(sequence: max(sequence, try update.apply(in: self, applied, durability)))
        }
        return end ?? nil
    }

    /// The maximum number of times to wait for earlier changes of the keys.
    private static let settlingAttempts = 4

    /// If entries are in memory, lets `body` read them at one instant, and change them. Allocates nothing for a few
    /// keys.
    /// - Parameters:
    ///   - update: an update to which ``Update/add(_:)`` or ``Update/addUnchecked(_:)`` has added the keys.
    ///   - writes: whether `body` may change entries.
    ///   - ticket: raised to cover the commits that the reply has to wait for.
    ///   - body: called at most once, with the locks of the keys held. Must not block, and must not call the engine.
    ///     Returns whether to apply its changes.
    /// - Returns: false if nothing was done: the disk is needed to find out whether a key has an entry; or an entry is
    ///   unreadable; or `body` returned false; or, with `writes`, the files accept no writes.
    package func withBatch(
        _ update: Update, now: Int64, writes: Bool = true, ticket: inout CommitTicket, _ body: (Update) -> Bool
    ) -> Bool {
        guard !ForkGuard.isForked else { return false }
        if writes { fillHintsBeforeWrite() }
        // Each change is published.
        update.prepare(self, now: now, .records, merges: !context.changes.isOn)
        let needed = try? Executor.run(update.alone, .memoryOnly) {
            (sequence, _) throws(LarderError) -> UInt64? in
            let store = try writes ? writableStore(applied.presence, "update") : nil
            guard body(update) else {
                update.uncountReads()
                return nil
            }
            guard let store, update.hasChanges else { return sequence }
            return max(sequence, update.apply(in: self, to: store, context.options.durability))
        }
        guard let needed else { return false }
        ticket = max(ticket, CommitTicket(sequence: needed))
        return true
    }

    /// Whether a change of a key waits for its commit. Called with the lock of its shard held.
    func isUndecided(_ key: Key) -> Bool {
        let shard = shards[key]
        return shard.find(key).map { undecided($0, shard) > 0 } ?? false
    }

    /// Whether the files are not open, but may be opened or created. Called with the lock of a shard held.
    var isWithoutFiles: Bool {
        switch applied.presence {
        case .absent, .closed, .failed: true
        case .open, .deleted, .shut: false
        }
    }

    /// Returns the epoch for writes. Throws if its store does not accept writes now.
    @inline(__always)
    func writableEpoch(_ operation: String) throws(LarderError) -> UInt64 {
        if pipeline.refusal(operation) == nil, case .open(let store) = applied.presence, !store.isSuspended {
            return store.epoch
        }
        return try writableStore(applied.presence, operation).epoch
    }

    /// Returns the store for writes. Throws if the store does not accept writes now.
    func writableStore(_ presence: DatabaseState.Presence, _ operation: String) throws(LarderError) -> EpochStore {
        switch presence {
        case .open(let store):
            if let error = store.suspension(operation) ?? pipeline.refusal(operation) { throw error }
            return store
        case .failed(let error), .shut(let error): throw error
        case .deleted: throw deletedError(operation)
        case .absent, .closed:
            throw LarderError(.noSuchDatabase, "the database is not open", operation: operation, database: name)
        }
    }

    /// Runs a command like ``perform(_:_:_:now:durability:fillCache:needsFiles:observing:_:)``, and waits for the
    /// commit. First opens, creates or reopens the database if needed. For callers that may block.
    package func commit<Result>(
        _ keys: [Key], loading: Loading, durability: Durability? = nil, observing version: ChangeVersion? = nil,
        _ body: (inout Update) throws(LarderError) -> Result
    ) throws(LarderError) -> Result {
        while true {
            try prepareToWrite()
            // If another thread is removing the files, there is no ticket, and the next attempt waits for that thread.
            var result: Result?
            let ticket = try perform(
                keys, loading, .mayBlock, now: now(), durability: durability, needsFiles: true, observing: version
            ) { (update) throws(LarderError) in result = try body(&update) }
            guard let ticket, let result else { continue }
            try pipeline.wait(for: ticket)
            return result
        }
    }

    /// Stores a payload without reading the present entry, and waits for the commit. Otherwise like
    /// ``commit(_:loading:durability:observing:_:)``.
    /// - Parameter policy: any but ``EntryPolicy/keep``.
    package func put(
        _ key: Key, payload: UnsafeRawBufferPointer, _ policy: EntryPolicy.Checked, codec: Codec,
        durability: Durability?
    ) throws(LarderError) {
        while true {
            try prepareToWrite()
            let now = now()
            let rule = policy.rule(rules.settings, now: now, ahead: timeAhead, previous: nil)
            // As in `commit`, the files may have been removed again.
            if let ticket = try put(
                key.unsafeBytes, hash: key.hash, payload: payload, rule: rule, grace: policy.grace, codec: codec,
                now: now, durability: durability)
            {
                return try pipeline.wait(for: ticket)
            }
        }
    }

    /// Opens, creates or reopens the database if needed. While too many writes wait for the disk, waits, and helps with
    /// a checkpoint.
    func prepareToWrite() throws(LarderError) {
        while true {
            if !isReady(forWriting: true) { try prepare(forWriting: true) }
            guard pipeline.isCongested || checkpointer.isFull(for: .short) else { return }
            pipeline.drain()
            if checkpointer.assist(for: .short) { continue }
            // If the file system was full, it may have space now.
            if isReady(forWriting: true) { return }
            try prepare(forWriting: true)
            if !checkpointer.assist(for: .short), isReady(forWriting: true) { return }
        }
    }
}
