extension Database {
    /// Runs one command on `keys`: all its reads and writes happen at one instant, and its writes are one commit unit.
    ///
    /// Looks in memory first, with the shard locks held. Reads the entries that are not in memory without the locks,
    /// and then locks the shards again. Repeats the reads of keys that were changed in the meantime.
    ///
    /// - Parameters:
    ///   - keys: every key that the command reads or writes.
    ///   - loading: the parts of the entries that `body` reads. With `headers`, payloads read from the disk are not
    ///     kept in memory, however many and large they are.
    ///   - access: whether the command may read the disk and open files.
    ///   - now: the command's time.
    ///   - fillCache: whether blocks that are read from the disk stay in LevelDB's block cache.
    ///   - version: the version of the change, if `body` applies a change of another larder: see ``Request/observed``.
    ///   - body: called once with the locks held. It must be short, must not block, and must not call the engine. If it
    ///     throws, everything is undone.
    /// - Returns: the ticket that the reply has to wait for; nil, without an effect, if the disk was needed and
    ///   `access` forbids it.
    package func perform(
        _ keys: [Key], _ loading: Loading, _ access: Access, now: Int64, fillCache: Bool = true,
        observing version: ChangeVersion? = nil, _ body: (inout Update) throws(LarderError) -> Void
    ) throws(LarderError) -> CommitTicket? {
        var request = Request(
            keys: keys, loading: loading, access: access, now: now, fillCache: fillCache, observed: version)
        guard loading == .headers else { return try run(request, body) }
        var isReadable = true
        let ticket = try run(request) { (update) throws(LarderError) in
            isReadable = !update.hasUnreadable
            if isReadable { try body(&update) }
        }
        if isReadable { return ticket }
        // Loading the whole records throws the error for the unreadable one.
        request.loading = .records
        return try run(request, body)
    }

    /// A command on some keys, for ``run(_:_:)``.
    struct Request {
        let keys: [Key]
        var loading: Loading
        let access: Access
        let now: Int64
        var durability: Durability?
        var fillCache = true
        /// Whether `body` runs only if the database's files are open.
        var needsFiles = false
        /// If the body applies a change from another larder, the version of that change. If changes have listeners, the
        /// command first waits, a limited number of times, until earlier changes of the keys are committed, so that
        /// their versions are known. Later commits get later versions than this one.
        var observed: ChangeVersion?
    }

    /// The maximum number of times to wait for earlier changes of the keys. See ``Request/observed``.
    private static let settlingAttempts = 4

    /// Runs a command.
    /// - Returns: nil, without an effect, if it needs files that are not open, or if `access` forbids using the disk.
    func run(
        _ request: Request, _ body: (inout Update) throws(LarderError) -> Void
    ) throws(LarderError) -> CommitTicket? {
        try ForkGuard.check("update")
        let settles = request.observed != nil && context.changes.isOn
        if settles, let version = request.observed { context.changeLog.observe(version, in: self) }
        var update = Update.take()
        defer { update.giveBack() }
        update.add(request.keys, areDistinct: request.loading == .none)
        update.prepare(self, now: request.now, request.loading, fillCache: request.fillCache)
        let end = try Executor.run(update.alone, request.access, drains: settles) {
            (sequence, attempt) throws(LarderError) -> CommitTicket?? in
            if request.needsFiles, isWithoutFiles { return .some(nil) }
            if settles, attempt < Self.settlingAttempts, request.keys.contains(where: isUndecided) { return nil }
            update.observes = settles
            try body(&update)
            guard update.hasChanges else { return CommitTicket(sequence: sequence) }
            return CommitTicket(sequence: max(sequence, try update.apply(in: self, applied, request.durability)))
        }
        return end ?? nil
    }

    /// Whether a change of a key waits for its commit. Called with the lock of its shard held.
    func isUndecided(_ key: Key) -> Bool { shards[key].find(key).map { undecided($0) > 0 } ?? false }

    /// Whether the files are not open, but may be opened or created. Called with the lock of a shard held.
    var isWithoutFiles: Bool {
        switch applied.presence {
        case .absent, .closed, .failed: true
        case .open, .deleted, .shut: false
        }
    }

    /// Returns the store for writes. Throws if it does not accept writes now.
    func writableStore(
        _ presence: DatabaseState.Presence, _ operation: String
    ) throws(LarderError) -> EpochStore {
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

    /// Runs ``perform(_:_:_:now:fillCache:observing:_:)`` and waits for the commit. First opens, creates or reopens
    /// the database if needed. For callers that may block.
    package func commit<Result>(
        _ keys: [Key], loading: Bool, durability: Durability? = nil,
        _ body: (inout Update) throws(LarderError) -> Result
    ) throws(LarderError) -> Result {
        try commit(keys, loading ? .records : .none, durability, body)
    }

    /// Like ``commit(_:loading:durability:_:)``, with a choice of what to load.
    func commit<Result>(
        _ keys: [Key], _ loading: Loading, _ durability: Durability? = nil,
        observing version: ChangeVersion? = nil, _ body: (inout Update) throws(LarderError) -> Result
    ) throws(LarderError) -> Result {
        while true {
            try prepareToWrite()
            let request = Request(
                keys: keys, loading: loading, access: .mayBlock, now: now(), durability: durability, needsFiles: true,
                observed: version)
            // If another thread is removing the files, `run` returns nil, and the next attempt waits for that thread.
            var result: Result?
            let ticket = try run(request) { (update) throws(LarderError) in result = try body(&update) }
            guard let ticket, let result else { continue }
            try pipeline.wait(for: ticket)
            return result
        }
    }

    /// Stores a payload without reading the present entry, and waits for the commit. Otherwise like
    /// ``commit(_:loading:durability:_:)``.
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
    private func prepareToWrite() throws(LarderError) {
        while true {
            if !isReady(forWriting: true) { try prepare(forWriting: true) }
            guard pipeline.isCongested || checkpointer.isFull else { return }
            pipeline.drain()
            if checkpointer.assist() { continue }
            // If the file system was full, it may have space now.
            if isReady(forWriting: true) { return }
            try prepare(forWriting: true)
            if !checkpointer.assist(), isReady(forWriting: true) { return }
        }
    }

    /// Runs ``read(_:now:fillCache:)`` and waits until the entry is committed. For callers that may block.
    package func get(_ key: Key, fillCache: Bool = true) throws(LarderError) -> Record? {
        let result = try read(key, now: now(), fillCache: fillCache)
        try pipeline.wait(for: result.ticket)
        return result.record
    }
}
