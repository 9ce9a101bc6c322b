extension Database {
    /// Runs one command on `keys`: everything it reads and writes happens at one instant, and what it writes is one
    /// commit unit.
    ///
    /// Cold keys are read before the locks are taken; with the shard locks held (in index order) it is checked that
    /// nothing changed meanwhile, and read again otherwise.
    ///
    /// - Parameters:
    ///   - keys: every key the command reads or writes.
    ///   - loading: whether the command needs the entries that are there. Blind writes do without.
    ///   - now: the command's time.
    ///   - durability: for this write, instead of the larder's.
    ///   - fillCache: whether the blocks that entries are read from stay in the block cache.
    ///   - body: called once with the locks held. Short, must not block, must not call the engine. What it throws
    ///     undoes everything.
    /// - Returns: what `body` returned, and what the answer has to wait for.
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

    /// As ``update(_:loading:now:durability:fillCache:_:)``, for a body that returns nothing, and for event loops too. What runs
    /// for every command of a daemon calls this: generic code of another module has its types made anew each time.
    /// - Parameters:
    ///   - loading: what `body` looks at. Of headers no payload need be kept in memory while the others are read, however many
    ///     and large the entries are.
    ///   - access: whether the disk may be asked, and files be opened.
    /// - Returns: what the answer has to wait for; nil where the disk would have had to be asked and may not: then nothing was
    ///   done.
    package func perform(
        _ keys: [Key], _ loading: Loading, _ access: Access, now: Int64, fillCache: Bool = true,
        _ body: (inout Update) throws(LarderError) -> Void
    ) throws(LarderError) -> CommitTicket? {
        var request = Request(keys: keys, loading: loading, access: access, now: now, fillCache: fillCache)
        guard loading == .headers else { return try run(request, body) }
        var isReadable = true
        let ticket = try run(request) { (update) throws(LarderError) in
            isReadable = update.unreadable.isEmpty
            if isReadable { try body(&update) }
        }
        if isReadable { return ticket }
        // Says what cannot be read, as a load of records does.
        request.loading = .records
        return try run(request, body)
    }

    /// One command, as the engine runs it.
    struct Request {
        let keys: [Key]
        var loading: Loading
        let access: Access
        let now: Int64
        var durability: Durability?
        var fillCache = true
        /// Whether the body must not run while the database's files are not open.
        var needsFiles = false
    }

    /// - Returns: nil when the files that the request needs are not open, or the disk that it must not ask is needed; then
    ///   nothing was done.
    func run(
        _ request: Request, _ body: (inout Update) throws(LarderError) -> Void
    ) throws(LarderError) -> CommitTicket? {
        try ForkGuard.check("update")
        let (keys, loading) = (request.keys, request.loading)
        let slots = loading == .none ? nil : Update.slotsOfRepeatedKeys(keys)
        let ticket = try withLoaded(keys, loading, request.access, fillCache: request.fillCache) {
            (cold, attempt) throws(LarderError) -> CommitTicket?? in
            let state = applied
            if request.needsFiles, isWithoutFiles(state) { return .some(nil) }
            var ticket = state.sequence
            var loaded: [ColdReads.Value] = []
            if loading != .none {
                let found = try gather(keys, loading, &cold, attempt: attempt, now: request.now, ticket: &ticket)
                guard let found else { return nil }
                loaded = found
            }
            var update = try Update(keys, slots: slots, request.now, state, loading, loaded)
            try body(&update)
            if !update.operations.isEmpty {
                ticket = max(ticket, try apply(update.operations, state, request.durability))
            }
            return CommitTicket(sequence: ticket)
        }
        return ticket ?? nil
    }

    private func isWithoutFiles(_ state: DatabaseState) -> Bool {
        switch state.presence {
        case .absent, .closed, .failed: true
        case .open, .deleted, .shut: false
        }
    }

    /// Queues operations and applies them. Called with the locks held of every shard they touch.
    private func apply(_ operations: [CommitOperation], _ state: DatabaseState, _ durability: Durability?)
        throws(LarderError)
        -> UInt64
    {
        let store = try writableStore(state, "update")
        let level = durability ?? context.options.durability
        let sequence = pipeline.enqueue(level, alone: operations.contains(where: \.isLong)) { batch, sequence in
            write(operations, into: batch, store, sequence)
        }
        note(operations, sequence)
        return sequence
    }

    /// Puts operations into the batch of their commit unit.
    func write(_ operations: [CommitOperation], into batch: JournalBatch, _ store: EpochStore, _ sequence: UInt64) {
        batch.select(database: name, number: number, epoch: store.epoch)
        noteChanges(operations, in: batch)
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

    /// Applies operations to the entries in memory. Called with the locks held of every shard they touch.
    func note(_ operations: [CommitOperation], _ sequence: UInt64) {
        for operation in operations {
            let hash = operation.key.hash
            let shard = shards[Shard.index(hash)]
            operation.key.withBytes { key in
                switch operation {
                case .put(_, let record, let note):
                    record.stored.withUnsafeBytes { shard.put(key, hash, stored: $0, sequence: sequence) }
                    if note.isUnseen { shard.reads.noteUnseen(operation.key) }
                case .putLarge(let value, let header, _): shard.put(value.take(header), sequence: sequence)
                case .remove: shard.remove(key, hash, sequence: sequence)
                }
            }
        }
    }

    /// The store that takes writes now.
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

    /// As ``update(_:loading:now:durability:fillCache:_:)``, and waits until it is committed. Opens, creates or reopens the
    /// database first if that is needed. For callers that may block.
    package func commit<Result>(
        _ keys: [Key], loading: Bool, durability: Durability? = nil,
        _ body: (inout Update) throws(LarderError) -> Result
    ) throws(LarderError) -> Result {
        try commit(keys, loading ? .records : .none, durability, body)
    }

    /// As ``commit(_:loading:durability:_:)``, where the headers of the entries may be enough.
    func commit<Result>(
        _ keys: [Key], _ loading: Loading, _ durability: Durability? = nil,
        _ body: (inout Update) throws(LarderError) -> Result
    ) throws(LarderError) -> Result {
        while true {
            if !isReady(forWriting: true) { try prepare(forWriting: true) }
            while pipeline.isCongested || checkpointer.isFull {
                pipeline.drain()
                if !checkpointer.assist() { break }
            }
            let request = Request(
                keys: keys, loading: loading, access: .mayBlock, now: now(), durability: durability, needsFiles: true)
            // The files may be gone again, when the database is being set aside: then another try waits for that.
            var result: Result?
            let ticket = try run(request) { (update) throws(LarderError) in result = try body(&update) }
            guard let ticket, let result else { continue }
            try pipeline.wait(for: ticket)
            return result
        }
    }

    /// As ``read(_:now:fillCache:)``, and waits until what was read is committed. For callers that may block.
    package func get(_ key: Key, fillCache: Bool = true) throws(LarderError) -> Record? {
        let result = try read(key, now: now(), fillCache: fillCache)
        try pipeline.wait(for: result.ticket)
        return result.record
    }
}
