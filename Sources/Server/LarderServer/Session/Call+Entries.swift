import LarderEngine
import LarderPlatform
import LarderRESP

/// Executes the plans of commands. Only this extension, and the extensions for origins and FETCH, access entries.
extension Call {
    /// Executes a plan, and writes its reply. If the command must be planned again on another thread, throws
    /// ``cold()``, and has no effect.
    mutating func perform(_ plan: EntryPlan) throws(CommandError) -> Outcome {
        try checkOrigins(plan)
        let replies = session.replyMemory
        switch plan {
        case .value(let index):
            // Leave long values to another thread, where copying them does not delay other connections.
            let isFresh = try read(index, below: Limits.loopBytesMax) { _, payload in replies.pointee.bulk(payload) }
            if !isFresh { replies.pointee.null() }
        case .read(let index, let reply): try replyToRead(index, reply)
        case .facts(let index, let lookup, let reply):
            let facts = try facts(index, lookup)
            try reply(facts, rules, &replies.pointee)
        case .noEntries(let indices, let isCounted, let failure, let reply):
            for index in indices where try facts(index, isCounted ? .counted : .uncounted) != nil { throw failure }
            reply(&replies.pointee)
        case .values: try replyWithValues(try keys(from: 1))
        case .count(let keys): replies.pointee.integer(try countFresh(keys))
        case .records(let keys, let cost, let reply):
            let records = try read(keys) { cost($0) > Limits.loopBytesMax }
            try mayTakeLong(bytes: cost(records.map { $0?.payloadCount ?? 0 }))
            try reply(records, &replies.pointee)
        case .apply(.exists): replies.pointee.integer(try countFresh([try key(1)]))
        case .apply(.remaining(let inSeconds)):
            let facts = try facts(1, .counted)
            replies.pointee.remaining(facts, rules, now: now, inSeconds: inSeconds)
        case .apply(let operation): replies.pointee.reply(try change(ChangePlan(operation, try key(1))))
        case .store(let options):
            let value = ChangePlan(storing: bytes(2), try key(1), options, now: now)
            replies.pointee.reply(try change(value))
        case .change(let change): replies.pointee.reply(try self.change(change))
        case .transfer(let transfer): replies.pointee.reply(.flag(try self.transfer(transfer)))
        case .fetch(let words): return readsOrigin ? try fetchBehindOrigin(words) : try fetch(words)
        case .long(let bytes, let plan):
            try mayTakeLong(bytes: bytes)
            return try perform(try plan())
        }
        return .done
    }

    // MARK: Threads

    /// Throws if the command must move to another thread, because processing this many bytes would delay the other
    /// connections of the event loop. The commands of a transaction move together.
    mutating func mayTakeLong(bytes: Int) throws(CommandError) {
        if let run, !run.note(cost: bytes) { throw cold() }
        if !mayBlock, !isInTransaction, bytes > Limits.loopBytesMax { throw cold() }
    }

    /// Throws if the command must move to the thread for long values, because it builds a value of this size. That
    /// thread runs one command at a time, so only one long value is in memory.
    ///
    /// In a transaction, ``ChangeContext/admit(_:_:)`` checks this instead.
    private mutating func mayBuild(bytes: Int) throws(CommandError) {
        try mayTakeLong(bytes: bytes)
        if !isInTransaction, !session.thread.admits(bytes) { throw needsLongThread() }
    }

    /// Returns the error that a command throws when it must run again on the thread for long values.
    private mutating func needsLongThread() -> CommandError {
        session.thread.needsLongThread = true
        // Undo the counts of these reads, because the other thread counts them again. A transaction has counted none.
        if !isInTransaction { database.noteReads(hits: -counted.hits, misses: -counted.misses) }
        run?.leaveToLongThread()
        return cold()
    }

    // MARK: One entry

    /// Returns the header and length of a key's entry; nil if there is none.
    private mutating func facts(_ index: Int, _ lookup: EntryPlan.Lookup) throws(CommandError) -> EntryFacts? {
        if readsOrigin { return try factsBehindOrigin(index) }
        // In a snapshot, all kinds of lookup read entries in the same way.
        let isPlain = try session.snapshot() == nil
        switch lookup {
        case .uncounted where isPlain:
            return try update([try key(index)], .records) { update in
                update.header(0).map { EntryFacts(header: $0, payloadCount: update.payload(0)?.count ?? 0) }
            }
        case .stale where isPlain && run == nil: return try keptFacts(try key(index))
        case .counted, .uncounted, .stale:
            var facts: EntryFacts?
            try read(index) { facts = EntryFacts(header: $0, payloadCount: $1.count) }
            return facts
        }
    }

    /// Returns the header and length of a key's entry, fresh or stale; nil if there is none.
    private mutating func keptFacts(_ key: Key) throws(CommandError) -> EntryFacts? {
        var found: EntryFacts?
        let isAnswered = try CommandError.wrap(
            database.fetch(FetchRequest(lookingFor: key), now: now, access, ticket: &ticket) { answer, payload in
                found = answer.header.map { EntryFacts(header: $0, payloadCount: payload?.count ?? 0) }
            })
        if !isAnswered { throw cold() }
        if let found, session.tracking.tracksReads { note(key, found.header, rules) }
        return found
    }

    private mutating func replyToRead(_ index: Int, _ reply: EntryPlan.Reply) throws(CommandError) {
        let replies = session.replyMemory
        var result = Result<Void, CommandError>.success(())
        let isFresh = try withoutActuallyEscaping(reply) { (reply) throws(CommandError) in
            try read(index) { _, payload in
                result = Result { () throws(CommandError) in try reply(payload, &replies.pointee) }
            }
        }
        if !isFresh { try reply(nil, &replies.pointee) }
        try result.get()
    }

    /// Reads the entry of the key at a position in the call. If the connection has a snapshot, reads from the snapshot.
    /// - Parameters:
    ///   - bytesMax: an entry of this length or longer is not read on an event loop; the call throws ``cold()``.
    ///   - body: called with the fresh entry, if there is one. It must take little time, so it should only copy data.
    /// - Returns: whether there is a fresh entry.
    @discardableResult
    private mutating func read(
        _ index: Int, below bytesMax: Int = .max, _ body: (RecordHeader, UnsafeRawBufferPointer) -> Void
    ) throws(CommandError) -> Bool {
        guard session.tracking.tracksReads else { return try readEntry(index, below: bytesMax, body) }
        var found: RecordHeader?
        let isFresh = try readEntry(index, below: bytesMax) { header, payload in
            found = header
            body(header, payload)
        }
        if let found { note(try key(index), found, rules) }
        return isFresh
    }

    private mutating func readEntry(
        _ index: Int, below bytesMax: Int, _ body: (RecordHeader, UnsafeRawBufferPointer) -> Void
    ) throws(CommandError) -> Bool {
        let key = try key(index)
        if readsOrigin { return try readBehindOrigin(key, below: bytesMax, body) }
        let open = try session.snapshot()
        if let run {
            if open != nil { throw Self.snapshotIsOpen }
            guard let record = try run.current(database, key) else { return false }
            record.withPayload { body(record.header, $0) }
            return true
        }
        if let open {
            guard let record = try read(key, from: open) else { return false }
            record.withPayload { body(record.header, $0) }
            return true
        }
        return try read(key, in: database, below: bytesMax, body)
    }

    /// Reads the fresh entry of a key in a database. Throws ``cold()`` if another thread must read the entry.
    mutating func read(
        _ key: Key, in database: Database, below bytesMax: Int = .max,
        _ body: (RecordHeader, UnsafeRawBufferPointer) -> Void
    ) throws(CommandError) -> Bool {
        let (now, access) = (now, access)
        var waits = ticket
        let outcome = try CommandError.wrap(
            key.withBytes { (bytes) throws(LarderError) in
                try database.read(bytes, now: now, access, below: bytesMax, ticket: &waits) { record, _ in
                    body(record.header, record.payload)
                }
            })
        ticket = waits
        if outcome == .cold { throw cold() }
        if outcome == .hit { counted.hits += 1 } else { counted.misses += 1 }
        return outcome == .hit
    }

    private static let snapshotIsOpen = CommandError(
        "ERR a snapshot is open, and transactions read current entries: SNAPSHOT CLOSE first")

    /// Returns a key's fresh entry from a snapshot. Throws ``cold()`` on an event loop.
    private mutating func read(_ key: Key, from open: OpenSnapshot) throws(CommandError) -> Record? {
        guard mayBlock else { throw cold() }
        return try CommandError.wrap(open.snapshot.get(key))
    }

    // MARK: Several entries

    /// Replies with the values of several keys, as they are at one instant; null for a key without a fresh entry.
    private mutating func replyWithValues(_ keys: [Key]) throws(CommandError) {
        // In a transaction, in a snapshot and with an origin, reply with copies of the entries.
        guard run == nil, !readsOrigin, try session.snapshot() == nil else {
            let records = try read(keys)
            session.replies.array(count: records.count)
            for record in records { session.replies.value(record) }
            return
        }
        guard mayBlock else { return try replyWithValuesInMemory(keys) }
        let entries = try hold(keys)
        if session.tracking.tracksReads {
            for (index, key) in keys.enumerated() {
                if let header = entries.header(index) { note(key, header, entries.rules) }
            }
        }
        session.replies.array(count: entries.count)
        for index in 0..<entries.count {
            entries.withPayload(index) { payload in
                if let payload { session.replies.bulk(payload) } else { session.replies.null() }
            }
        }
    }

    /// Implements ``replyWithValues(_:)`` on an event loop. Throws ``cold()`` for long values: another thread must copy
    /// them.
    private mutating func replyWithValuesInMemory(_ keys: [Key]) throws(CommandError) {
        let call = self
        var headers: [(Int, RecordHeader)] = []
        let tracksReads = session.tracking.tracksReads
        let isDone = session.replyQueue.addValues(
            of: database, keys.count, now: now, bytesMax: server.limits.replyBytesMax, &ticket
        ) {
            call.bytes($0 + 1)
        } seen: {
            if tracksReads { headers.append(($0, $1)) }
        }
        if !isDone { throw cold() }
        for (index, header) in headers { note(keys[index], header, rules) }
    }

    /// Returns the fresh entries of several keys at one instant. Throws if their values exceed the limit of one reply,
    /// or if very long values must be copied on the thread for long values.
    private mutating func hold(_ keys: [Key]) throws(CommandError) -> HeldEntries {
        let bytesMax = server.limits.replyBytesMax
        // First read the entries one by one. This loads them into memory if they fit, and stops at the limit for one
        // reply.
        var byteCount = 0
        for index in keys.indices {
            try read(index + 1) { byteCount += $1.count }
            if byteCount > bytesMax { throw .tooLongReply(server.limits) }
        }
        if !session.thread.admits(byteCount) { throw needsLongThread() }
        let entries: HeldEntries
        do throws(LarderError) {
            entries = try HeldEntries(keys, in: database, now: now, bytesMax: bytesMax, ticket: &ticket)
        } catch {
            if error.code == .invalidArgument { throw .tooLongReply(server.limits) }
            throw CommandError(error)
        }
        guard entries.payloadBytes <= bytesMax else { throw .tooLongReply(server.limits) }
        return entries
    }

    /// Returns the fresh entries of several keys at one instant. Throws if their values exceed the limit of one reply.
    /// - Parameter isLong: returns whether values of these lengths must be processed on another thread. If so, a call
    ///   on an event loop throws ``cold()``, and counts no reads.
    private mutating func read(
        _ keys: [Key], leaving isLong: ([Int]) -> Bool = { _ in false }
    ) throws(CommandError) -> [Record?] {
        if readsOrigin { return try readBehindOrigin(keys) }
        let open = try session.snapshot()
        if run != nil, open != nil { throw Self.snapshotIsOpen }
        var room = server.limits.replyBytesMax
        if let open {
            var records: [Record?] = []
            for key in keys {
                records.append(try read(key, from: open))
                try take(records.last??.payloadCount ?? 0, from: &room)
            }
            return records
        }
        try limitTotal(of: keys)
        // Then read all entries at one instant. Most of them are in memory now.
        let (isOnLoop, isCounted) = (!mayBlock && !isInTransaction, mayBlock)
        let records = try update(keys, .records) { update -> [Record?]? in
            if isOnLoop, isLong(keys.indices.map { update.payload($0)?.count ?? 0 }) { return nil }
            if !isCounted { for index in keys.indices { _ = update.has(index) } }
            return keys.indices.map { update.current($0) }
        }
        guard let records else { throw cold() }
        for record in records { try take(record?.payloadCount ?? 0, from: &room) }
        return records
    }

    /// Reads the entries of keys one by one. Throws if their values together exceed the limit of one reply, because
    /// loading them would take too much memory. Does nothing on an event loop, which only reads values that are already
    /// in memory.
    private mutating func limitTotal(of keys: some Sequence<Key>) throws(CommandError) {
        guard mayBlock else { return }
        var room = server.limits.replyBytesMax
        for key in keys {
            var count = 0
            _ = try read(key, in: database) { count = $1.count }
            try take(count, from: &room)
        }
    }

    private func take(_ count: Int, from room: inout Int) throws(CommandError) {
        room -= count
        if room < 0 { throw .tooLongReply(server.limits) }
    }

    /// Counts the keys that have a fresh entry. A key that is given twice counts twice.
    private mutating func countFresh(_ keys: [Key]) throws(CommandError) -> Int {
        if readsOrigin { return try countBehindOrigin(keys) }
        if let open = try session.snapshot() {
            if run != nil { throw Self.snapshotIsOpen }
            var count = 0
            for key in keys where try read(key, from: open) != nil { count += 1 }
            return count
        }
        return try update(keys, .headers) { update in keys.indices.count { update.has($0) } }
    }

    // MARK: Changes

    private mutating func change(_ change: ChangePlan) throws(CommandError) -> ChangeReply {
        if let bytes = change.builtBytes {
            try mayBuild(bytes: bytes)
            if change.limitsSources { try limitTotal(of: change.keys.dropFirst()) }
            if !isInTransaction { session.waitForRoomToBuild() }
        }
        let context = ChangeContext(
            long: try change.staged.flatMap { (value) throws(CommandError) in try stage(value, change.keys[0]) },
            valueBytesMax: server.limits.valueBytesMax, thread: session.thread, hasCounted: mayBlock)
        // If the change builds a new value from an old one, do not load the old value into the cache. It is about to be
        // replaced, and may be larger than the cache.
        let result = try update(
            change.keys, change.loading, fillCache: change.builtBytes == nil, observing: change.version
        ) { update in
            Result { () throws(CommandError) in try change.body(&update, context) }
        }
        switch result {
        case .success(let answer): return answer
        case .failure(.needsLongThread): throw needsLongThread()
        case .failure(let error): throw error
        }
    }

    /// Runs one change of the entries with these keys. The reply waits for the commit of the change.
    private mutating func update<Result>(
        _ keys: [Key], _ loading: Loading, fillCache: Bool = true, observing version: ChangeVersion? = nil,
        _ body: (inout Update) throws(LarderError) -> Result
    ) throws(CommandError) -> Result {
        // Load the existing entry if events report whether a key is new.
        let loading = loading == .none && server.notifier.needsPrevious ? .records : loading
        if let run {
            var result: Result?
            try run.update(database, keys) { (update) throws(LarderError) in
                prepare(&update, hasLoaded: loading != .none)
                result = try body(&update)
            }
            return Self.made(result)
        }
        var result: Result?
        let ticket = try CommandError.wrap(
            database.perform(keys, loading, access, now: now, fillCache: fillCache, observing: version) {
                (update) throws(LarderError) in
                prepare(&update, hasLoaded: loading != .none)
                result = try body(&update)
            })
        return try committed(result, ticket)
    }

    /// Writes a long value to the disk, before the update that stores the value. Blocks.
    /// - Returns: nil if the value was not written, because the command is in a transaction or will store nothing.
    private func stage(_ value: StagedValue, _ key: Key) throws(CommandError) -> LargeValue? {
        // Transactions are limited in size, and event loops store no long values: neither needs this.
        guard mayBlock, !isInTransaction, let rule = value.rule(rules) else { return nil }
        return try CommandError.wrap(
            LargeValue(staging: value.payload, key, in: database, rule: rule, grace: value.grace))
    }

    /// Returns the result of a change, and makes the reply wait for its commit.
    /// - Parameter ticket: nil if the change was not made, because this thread must not block.
    private mutating func committed<Result>(_ result: Result?, _ ticket: CommitTicket?) throws(CommandError) -> Result {
        guard let ticket else { throw cold() }
        depends(on: ticket)
        return Self.made(result)
    }

    /// Returns the result of an update's body. The body has always run unless an error was thrown.
    private static func made<Result>(_ result: Result?) -> Result {
        guard let result else { preconditionFailure("the body of an update was not called") }
        return result
    }

    /// Records which client and command make a change. Also records the loaded keys if the client tracks its reads.
    private func prepare(_ update: inout Update, hasLoaded: Bool) {
        update.origin = WriteOrigin(tag: spec?.tag.rawValue ?? 0, client: session.id)
        guard hasLoaded, session.tracking.tracksReads else { return }
        for index in 0..<update.count {
            if let header = update.header(index) { note(update.key(index), header, update.rules) }
        }
    }

    /// Records the deadline of an entry that the client may cache, for a notification about the entry's expiry.
    func note(_ key: Key, _ header: RecordHeader, _ rules: FreshnessRules) {
        guard let deadline = rules.deadline(header) else { return }
        server.tracking.didRead(Array(key.bytes), deadline: deadline)
    }

    // MARK: Two databases

    /// Returns the database to which an entry is copied or moved.
    func target(of transfer: TransferPlan) throws(CommandError) -> Database {
        try transfer.target.map { (index) throws(CommandError) in try database(text(index)) } ?? database
    }

    /// Copies or moves an entry. As in Redis, only a copy counts as a read.
    /// - Returns: false if there is no entry, or if the target key has an entry that must not be replaced.
    private mutating func transfer(_ transfer: TransferPlan) throws(CommandError) -> Bool {
        let target = try target(of: transfer)
        let (removes, replaces) = (transfer.removes, transfer.replaces)
        guard target !== database else {
            guard !removes, transfer.key != transfer.targetKey else { throw .sameObject }
            return try update([transfer.key, transfer.targetKey], .records) { update in
                guard let record = update.readRecord(0), replaces || !update.isFresh(1) else { return false }
                update.place(1, record)
                return true
            }
        }
        // In a transaction, first check whether there is an entry. If there is nothing to move or copy, do not create
        // the files of the other database.
        if isInTransaction, try facts(1, removes ? .uncounted : .counted) == nil { return false }
        let counts = !removes && !isInTransaction
        return try update([transfer.key], and: target, [transfer.targetKey]) { update, other in
            guard let record = counts ? update.readRecord(0) : update.current(0), replaces || !other.isFresh(0) else {
                return false
            }
            if removes { update.remove(0) }
            other.place(0, record)
            return true
        }
    }

    /// Changes entries of the current database and of another database in one step: either both databases are changed,
    /// or none. If the other database has no files, they are created only if `body` writes to that database.
    /// - Parameter loading: whether the existing entries of each database are read. A transaction always reads them.
    mutating func update<Result>(
        _ keys: [Key], and other: Database, _ otherKeys: [Key], loading: (Bool, Bool) = (true, true),
        _ body: (inout Update, inout Update) throws(LarderError) -> Result
    ) throws(CommandError) -> Result {
        if let run {
            var result: Result?
            try run.update(database, keys, and: other, otherKeys) { (update, otherUpdate) throws(LarderError) in
                prepare(&update, hasLoaded: true)
                prepare(&otherUpdate, hasLoaded: true)
                result = try body(&update, &otherUpdate)
            }
            return Self.made(result)
        }
        // First try without creating the other database's files, because they are needed only if the body writes to it.
        for needsFiles in [other.exists, true] {
            if needsFiles, !other.isReady(forWriting: true) { try prepare(other) }
            var result: Result?
            let end = try CommandError.wrap(
                server.engine.transact(
                    TransactionPart(
                        database: database, keys: keys, loadedCount: loading.0 ? keys.count : 0, watches: []),
                    and: TransactionPart(
                        database: other, keys: otherKeys, loadedCount: loading.1 ? otherKeys.count : 0, watches: []),
                    now: now, access
                ) {
                    (update, otherUpdate) throws(LarderError) in
                    prepare(&update, hasLoaded: loading.0)
                    prepare(&otherUpdate, hasLoaded: loading.1)
                    result = try body(&update, &otherUpdate)
                })
            switch end {
            case .applied(let ticket): return try committed(result, ticket)
            case .cold: return try committed(result, nil)
            case .dropped: continue
            }
        }
        throw CommandError("ERR the database was purged or deleted during the command: try again")
    }

    /// Opens the files of another database, and creates them if they are missing. Throws ``cold()`` on an event loop.
    mutating func prepare(_ other: Database) throws(CommandError) {
        guard mayBlock else { throw cold() }
        try CommandError.wrap(other.prepare(forWriting: true))
    }
}

extension CommandError {
    static let sameObject = CommandError("ERR source and destination objects are the same")
}
