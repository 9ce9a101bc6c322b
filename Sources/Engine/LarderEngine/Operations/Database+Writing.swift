extension Database {
    /// Runs one command on `keys`: all its reads and writes happen at one instant, and its writes are one commit unit.
    ///
    /// Reads cold keys before it takes the locks. With the shard locks held (in index order), it checks that these keys
    /// have not changed, and otherwise reads them again.
    ///
    /// - Parameters:
    ///   - keys: every key that the command reads or writes.
    ///   - loading: whether the command needs the present entries. Blind writes do not.
    ///   - now: the command's time.
    ///   - durability: for this write; nil for that of the larder.
    ///   - fillCache: whether the blocks that are read stay in the block cache.
    ///   - body: called once with the locks held. It must be short, must not block, and must not call the engine. If it
    ///     throws, everything is undone.
    /// - Returns: the result of `body`, and the ticket that the reply has to wait for.
    package func update<Result>(
        _ keys: [Key], loading: Bool, now: Int64, durability: Durability? = nil, fillCache: Bool = true,
        _ body: (inout Update) throws(LarderError) -> Result
    ) throws(LarderError) -> (Result, CommitTicket) {
        var result: Result?
        let request = Request(
            keys: keys, loading: loading ? .records : .none, access: .mayBlock, now: now, durability: durability,
            fillCache: fillCache)
        let ticket = try run(request) { (update) throws(LarderError) in result = try body(&update) }
        guard let result, let ticket else { preconditionFailure("the body of an update was not called") }
        return (result, ticket)
    }

    /// Like ``update(_:loading:now:durability:fillCache:_:)`` for a body that returns nothing; event loops may call it
    /// too. The daemon calls this function for every command, because the generic one builds its types at each call
    /// from another module.
    /// - Parameters:
    ///   - loading: the parts that `body` reads. With headers, no payload is kept in memory while the other entries are
    ///     read, however many and large they are.
    ///   - access: whether it may read the disk and open files.
    ///   - version: the version of the change, if `body` applies a change of another larder: see ``Request/observed``.
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
            isReadable = update.unreadable.isEmpty
            if isReadable { try body(&update) }
        }
        if isReadable { return ticket }
        // Throws if a record is unreadable, as loading records does.
        request.loading = .records
        return try run(request, body)
    }

    /// One command for the engine.
    struct Request {
        let keys: [Key]
        var loading: Loading
        let access: Access
        let now: Int64
        var durability: Durability?
        var fillCache = true
        /// Whether `body` runs only if the database's files are open.
        var needsFiles = false
        /// If the body applies a change of another larder, the version of that change. If the database has followers,
        /// the update first waits until earlier changes of the keys are committed, so that their versions are known. It
        /// tries again a few times if the keys keep changing. Later commits get later versions than this one.
        var observed: ChangeVersion?
    }

    /// The maximum number of times to wait for earlier changes of the keys. See ``Request/observed``.
    private static let settlingAttempts = 4

    /// - Returns: nil, without an effect, if the request needs files that are not open, or the disk without being
    ///   allowed to use it.
    func run(
        _ request: Request, _ body: (inout Update) throws(LarderError) -> Void
    ) throws(LarderError) -> CommitTicket? {
        try ForkGuard.check("update")
        let (keys, loading) = (request.keys, request.loading)
        let slots = loading == .none ? nil : Update.slotsOfRepeatedKeys(keys)
        let settles = request.observed != nil && context.changes.isOn
        if settles, let version = request.observed { context.changeLog.observe(version, in: self) }
        let ticket = try withLoaded(
            keys, loading, request.access, fillCache: request.fillCache, drains: settles
        ) {
            (cold, attempt) throws(LarderError) -> CommitTicket?? in
            let state = applied
            if request.needsFiles, isWithoutFiles(state) { return .some(nil) }
            if settles, attempt <= Self.settlingAttempts, keys.contains(where: isUndecided) { return nil }
            var ticket = state.sequence
            var loaded: [ColdReads.Value] = []
            if loading != .none {
                let found = try gather(keys, loading, &cold, attempt: attempt, now: request.now, ticket: &ticket)
                guard let found else { return nil }
                loaded = found
            }
            var update = try Update(self, keys, slots: slots, request.now, loading, loaded)
            update.observes = settles
            try body(&update)
            if !update.operations.isEmpty {
                ticket = max(ticket, try apply(update.operations, state, request.durability))
            }
            return CommitTicket(sequence: ticket)
        }
        return ticket ?? nil
    }

    /// Whether a change of a key waits for its commit. Called with the lock of its shard held.
    func isUndecided(_ key: Key) -> Bool { shards[key].find(key).map { undecided($0) > 0 } ?? false }

    private func isWithoutFiles(_ state: DatabaseState) -> Bool {
        switch state.presence {
        case .absent, .closed, .failed: true
        case .open, .deleted, .shut: false
        }
    }

    /// Queues operations and applies them. Called with the locks of all their shards held.
    private func apply(_ operations: [CommitOperation], _ state: DatabaseState, _ durability: Durability?)
        throws(LarderError)
        -> UInt64
    {
        let store = try writableStore(state, "update")
        try checkFits(operations.reduce(0) { $0 + $1.byteCount }, limit: state.diskLimit)
        let level = durability ?? context.options.durability
        let sequence = pipeline.enqueue(level, alone: operations.contains(where: \.isLong)) { batch, sequence in
            write(operations, into: batch, store, sequence)
        }
        note(operations, sequence)
        return sequence
    }

    /// Adds operations to the batch of their commit unit.
    func write(_ operations: [CommitOperation], into batch: JournalBatch, _ store: EpochStore, _ sequence: UInt64) {
        batch.select(database: name, number: number, epoch: store.epoch)
        noteChanges(operations, in: batch, sequence)
        for operation in operations {
            operation.key.withBytes { key in
                switch operation {
                case .put(_, let record, _):
                    record.stored.withUnsafeBytes { batch.put(key: key, record: $0, sequence: sequence) }
                case .putLarge(let value, let header, _):
                    batch.put(key: key, header: header, staged: value.staged, sequence: sequence)
                case .remove: batch.remove(key: key, sequence: sequence)
                }
            }
        }
    }

    /// Applies operations to the entries in memory. Called with the locks of all their shards held.
    func note(_ operations: [CommitOperation], _ sequence: UInt64) {
        for operation in operations {
            let hash = operation.key.hash
            let shard = shards[Shard.index(hash)]
            operation.key.withBytes { key in
                switch operation {
                case .put(_, let record, let note):
                    record.stored.withUnsafeBytes {
                        shard.put(key, hash, stored: $0, sequence: sequence, lease: note.lease)
                    }
                    if note.isUnseen { shard.reads.noteUnseen(operation.key) }
                    if note.isRenewal { shard.counters.renewals += 1 }
                case .putLarge(let value, let header, let note):
                    shard.put(value.take(header), sequence: sequence, lease: note.lease)
                case .remove(_, let note):
                    if !wasThere(note, shard, key, hash) { shard.counters.vainRemovals += 1 }
                    shard.remove(key, hash, sequence: sequence, lease: note.lease)
                    if note.isUnseen { shard.reads.noteUnseen(operation.key) }
                }
            }
        }
    }

    /// Whether a key to be removed has a fresh entry; true if the key was not looked up and memory cannot tell.
    private func wasThere(_ note: ChangeNote, _ shard: Shard, _ key: UnsafeRawBufferPointer, _ hash: Int) -> Bool {
        switch note.previous {
        case .fresh: return true
        case .absent: return false
        case .unknown:
            guard let entry = shard.table.find(key, hash: hash) else { return true }
            return entry.record != nil && !entry.head.pointee.isFoundExpired
        }
    }

    /// The store that accepts writes now.
    func writableStore(_ state: DatabaseState, _ operation: String) throws(LarderError) -> EpochStore {
        switch state.presence {
        case .open(let store):
            if let error = store.suspension(operation) ?? pipeline.refusal(operation) { throw error }
            return store
        case .failed(let error), .shut(let error): throw error
        case .deleted: throw deletedError(operation)
        case .absent, .closed:
            throw LarderError(.noSuchDatabase, "the database is not open", operation: operation, database: name)
        }
    }

    /// Runs ``update(_:loading:now:durability:fillCache:_:)`` and waits for the commit. First opens, creates or reopens
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
            if !isReady(forWriting: true) { try prepare(forWriting: true) }
            while pipeline.isCongested || checkpointer.isFull {
                pipeline.drain()
                if checkpointer.assist() { continue }
                // The file system may have been full, and may have space now.
                if isReady(forWriting: true) { break }
                try prepare(forWriting: true)
                if !checkpointer.assist() { break }
            }
            if !isReady(forWriting: true) { continue }
            let request = Request(
                keys: keys, loading: loading, access: .mayBlock, now: now(), durability: durability, needsFiles: true,
                observed: version)
            // The files may be set aside and removed now. The next attempt waits for that.
            var result: Result?
            let ticket = try run(request) { (update) throws(LarderError) in result = try body(&update) }
            guard let ticket, let result else { continue }
            try pipeline.wait(for: ticket)
            return result
        }
    }

    /// Runs ``read(_:now:fillCache:)`` and waits until the entry is committed. For callers that may block.
    package func get(_ key: Key, fillCache: Bool = true) throws(LarderError) -> Record? {
        let result = try read(key, now: now(), fillCache: fillCache)
        try pipeline.wait(for: result.ticket)
        return result.record
    }
}
