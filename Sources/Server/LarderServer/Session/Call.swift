import LarderCommandCatalog
import LarderEngine
import LarderPlatform
import LarderRESP

/// A running command: its words, its time, and its reply.
///
/// Used only by the owner of the session, which is its event loop or another thread. A handler must write its reply
/// last, so that an error that it throws is the only reply.
struct Call {
    let session: Session
    let server: ServerState
    /// The time that the command uses for expiry, in milliseconds since 1970.
    let now: Int64
    /// How far ``now`` is ahead of the wall clock, in milliseconds; 0 unless the wall clock was set back. Commands that
    /// take or return an instant need it, because clients use the wall clock. It reads the clocks, so do not use it in
    /// other commands.
    var timeAhead: Int64 { server.engine.clockOffsetMilliseconds }
    /// Whether the command may wait for the disk, because it does not run on an event loop.
    let mayBlock: Bool
    /// The commit that must succeed before the reply is sent.
    var ticket = CommitTicket.none
    /// The words of a command in a transaction; nil if the parser has the words.
    let command: QueuedCommand?
    /// The transaction of the command. While it is set, do not call the engine: the transaction holds the engine's
    /// locks.
    let run: TransactionRun?
    /// Whether the command needed the disk on a thread that must not block. It has had no effect then, and runs again
    /// from the start on another thread.
    private(set) var isCold = false
    /// A key that must be read from the origin before the command can run. The command has had no effect yet, and runs
    /// again when the origin has replied.
    var missing: [UInt8]?
    /// Whether the value of the last key read is not a string at the origin.
    var isOfOtherType = false
    /// Whether the command has read a stale value.
    var hasReadStale = false

    init(
        _ session: Session, _ server: ServerState, now: Int64, mayBlock: Bool, command: QueuedCommand? = nil,
        run: TransactionRun? = nil
    ) {
        self.command = command
        self.run = run
        self.session = session
        self.server = server
        self.now = now
        self.mayBlock = mayBlock
    }

    mutating func depends(on other: CommitTicket) { if other > ticket { ticket = other } }

    /// The command's name without its subcommand.
    var name: String { spec?.name ?? "" }

    // MARK: The database

    var database: Database { session.database }

    /// Returns the database with a name. Creates no files.
    func database(_ name: String) throws(CommandError) -> Database {
        if let run { return try run.database(name) }
        return try CommandError.wrap(server.engine.database(name))
    }

    /// The rules by which entries of the current database are fresh or stale.
    var rules: FreshnessRules { run?.rules(database) ?? database.rules }

    /// Whether the command belongs to a transaction, and therefore runs while the transaction's locks are held.
    var isInTransaction: Bool { run != nil }

    /// Returns an error to throw if the command must wait for the disk. It is not sent: the command runs again
    /// elsewhere.
    mutating func cold() -> CommandError {
        isCold = true
        return CommandError("ERR the entry is not in memory")
    }

    /// Throws if the command must run on another thread, where it does not delay other connections, because it will
    /// process many bytes. Commands of a transaction run on the thread of the transaction.
    mutating func mayTakeLong(bytes: Int) throws(CommandError) {
        if !mayBlock, !isInTransaction, bytes > Limits.loopBytesMax { throw cold() }
    }

    /// Throws if the command must run on the thread that builds long values, because it will build a value of this
    /// size. That thread runs one command at a time, so only one long value is in memory, regardless of the number of
    /// clients.
    ///
    /// In a transaction, ``Call/admits(_:_:)`` makes this decision.
    mutating func mayBuild(bytes: Int) throws(CommandError) {
        try mayTakeLong(bytes: bytes)
        guard bytes >= Database.largeValueBytesMin, !isInTransaction else { return }
        guard session.thread.mayBuildLong else {
            session.thread.needsLongThread = true
            throw cold()
        }
    }

    /// Returns whether an update may build a value of this many bytes on this thread.
    func admits(_ bytes: Int, _ update: Update) -> Admission {
        guard bytes <= server.limits.valueBytesMax - update.builtBytes else { return .tooMuch }
        return session.thread.admits(bytes) ? .granted : .elsewhere
    }

    /// Runs a change that builds a value. If it must run on another thread, it changes nothing, and this call throws.
    mutating func build<Result>(
        _ keys: [Key], _ body: (inout Update, Call) -> Built<Result>
    ) throws(CommandError) -> Result {
        let call = self
        if !isInTransaction { session.waitForRoomToBuild() }
        // Do not load the old value into the cache: it is about to be replaced, and may be larger than the cache's
        // limit.
        switch try update(keys, loading: true, fillCache: false, { body(&$0, call) }) {
        case .value(let result): return result
        case .failure(let error): throw error
        case .refused(.tooMuch):
            throw CommandError(
                "ERR the values that one command or transaction builds exceed \(server.limits.valueBytesMax) bytes")
        case .refused:
            session.thread.needsLongThread = true
            run?.leaveToLongThread()
            throw cold()
        }
    }

    /// Whether a value may be built, and on which thread.
    enum Admission {
        case granted
        /// The value may be built only on the thread for long values.
        case elsewhere
        case tooMuch
    }

    enum Built<Result> {
        case value(Result)
        case failure(CommandError)
        case refused(Admission)
    }

    /// The header of an entry, and the length of its value in bytes.
    struct Facts {
        let header: RecordHeader
        let payloadCount: Int
    }

    /// Returns the header and length of a key's fresh entry; nil if there is none.
    /// - Parameter index: the position of the key in the command.
    mutating func facts(_ index: Int) throws(CommandError) -> Facts? {
        var facts: Facts?
        try read(index) { header, payload in facts = Facts(header: header, payloadCount: payload.count) }
        return facts
    }

    /// Like ``facts(_:)``, but counts no hit or miss, for commands whose reads Redis does not count.
    mutating func uncountedFacts(_ index: Int) throws(CommandError) -> Facts? {
        guard try session.snapshot() == nil, !readsOrigin else { return try facts(index) }
        return try update([try key(index)], loading: true) { update in
            update.header(0).map { Facts(header: $0, payloadCount: update.payload(0)?.count ?? 0) }
        }
    }

    /// Returns the header of a key's entry, fresh or stale, and the length of its value in bytes; nil if there is none.
    /// In transactions, in snapshots and in databases with an origin, only fresh entries are found.
    mutating func kept(_ index: Int) throws(CommandError) -> (RecordHeader, payloadCount: Int)? {
        guard run == nil, try session.snapshot() == nil, !readsOrigin else {
            return try facts(index).map { ($0.header, $0.payloadCount) }
        }
        let request = FetchRequest(lookingFor: try key(index))
        var found: (RecordHeader, payloadCount: Int)?
        let isAnswered = try CommandError.wrap(
            database.fetch(request, now: now, access, ticket: &ticket) { answer, payload in
                found = answer.header.map { ($0, payload?.count ?? 0) }
            })
        if !isAnswered { throw cold() }
        if let found, session.tracking.tracksReads { note(request.key, found.0, rules) }
        return found
    }

    /// Replies with the value of a key's fresh entry, or with null.
    mutating func replyWithValue(_ index: Int) throws(CommandError) {
        let replies = session.replyMemory
        // Leave long values to another thread, where copying them does not delay other connections.
        let isFresh = try read(index, below: Limits.loopBytesMax) { _, payload in replies.pointee.bulk(payload) }
        if !isFresh { replies.pointee.null() }
    }

    /// Reads the key that is the word at `index`, from the connection's snapshot if it has opened one.
    /// - Parameters:
    ///   - bytesMax: an entry of this length or longer is not read on an event loop; the call throws ``cold()``.
    ///   - body: called with the fresh entry, if there is one. It must be short, and may only copy what it needs.
    /// - Returns: whether there is a fresh entry.
    @discardableResult
    mutating func read(
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
            try checkHasNoOrigin()
            guard let record = try run.current(database, key) else { return false }
            record.withPayload { body(record.header, $0) }
            return true
        }
        if let open {
            guard mayBlock else { throw cold() }
            guard let record = try read(key, open) else { return false }
            record.withPayload { body(record.header, $0) }
            return true
        }
        return try read(key, in: database, below: bytesMax, body)
    }

    /// Reads the fresh entry of a key of a database. Throws ``cold()`` if another thread must read it.
    mutating func read(
        _ key: Key, in database: Database, below bytesMax: Int = .max,
        _ body: (RecordHeader, UnsafeRawBufferPointer) -> Void
    ) throws(CommandError) -> Bool {
        let (now, access) = (now, access)
        var waits = ticket
        let outcome = try CommandError.wrap(
            key.withBytes { (bytes) throws(LarderError) in
                try database.read(bytes, now: now, access, below: bytesMax, ticket: &waits) { header, record, _ in
                    body(header, header.payload(of: record))
                }
            })
        ticket = waits
        if outcome == .cold { throw cold() }
        return outcome == .hit
    }

    private static let snapshotIsOpen = CommandError(
        "ERR a snapshot is open, and transactions read current entries: SNAPSHOT CLOSE first")

    /// Returns a key's fresh entry from a snapshot, or from the current state if `open` is nil. May block.
    private mutating func read(_ key: Key, _ open: OpenSnapshot?) throws(CommandError) -> Record? {
        do throws(LarderError) {
            if let open { return try open.snapshot.get(key) }
            var (record, waits): (Record?, CommitTicket) = (nil, ticket)
            _ = try key.withBytes { (bytes) throws(LarderError) in
                try database.read(bytes, now: now, .mayBlock, ticket: &waits) { header, stored, _ in
                    record = Record(header, stored: stored)
                }
            }
            ticket = waits
            return record
        } catch {
            throw CommandError(error)
        }
    }

    /// Replies with the values of the fresh entries of several keys, all at one instant; null for a key without one.
    mutating func replyWithValues(_ keys: [Key]) throws(CommandError) {
        // In a transaction, in a snapshot, and with an origin, reply with copies of the entries.
        guard run == nil, try session.snapshot() == nil, !readsOrigin else {
            let records = try read(keys)
            session.replies.array(count: records.count)
            for record in records { session.reply(record) }
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

    /// Does the same on an event loop. Throws ``cold()`` for long values, which another thread must copy.
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
        // First read each entry alone. This loads entries into memory if possible, and stops at the limit for one
        // reply.
        var byteCount = 0
        for index in keys.indices {
            try read(index + 1) { byteCount += $1.count }
            if byteCount > bytesMax { throw .tooLongReply(server.limits) }
        }
        if !session.thread.admits(byteCount) {
            session.thread.needsLongThread = true
            throw cold()
        }
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
    /// - Parameter isLong: whether another thread must process the values. Then the call throws ``cold()`` on an event
    ///   loop, and counts no reads.
    mutating func read(
        _ keys: [Key], leaving isLong: (Update) -> Bool = { _ in false }
    ) throws(CommandError) -> [Record?] {
        if readsOrigin { return try readBehindOrigin(keys) }
        let open = try session.snapshot()
        if run != nil, open != nil { throw Self.snapshotIsOpen }
        var room = server.limits.replyBytesMax
        if mayBlock {
            // First read the entries one at a time, to stop when the reply's limit is exceeded.
            var records: [Record?] = []
            for key in keys {
                let record = try read(key, open)
                try take(record, from: &room)
                if open != nil { records.append(record) }
            }
            if open != nil { return records }
        } else if open != nil {
            throw cold()
        }
        // Then read all entries at one instant. Most of them are in memory now.
        let call = self
        let records = try update(keys, loading: true) { update -> [Record?]? in
            if !call.mayBlock, !call.isInTransaction, isLong(update) { return nil }
            for index in keys.indices { call.countRead(index, in: update) }
            return keys.indices.map { update.current($0) }
        }
        guard let records else { throw cold() }
        room = server.limits.replyBytesMax
        for record in records { try take(record, from: &room) }
        return records
    }

    /// Throws if the values of the keys exceed the limit of one reply, so that loading them cannot take too much
    /// memory. On an event loop, nothing is checked: there, only values that are already in memory are read.
    mutating func limitTotal(of keys: some Sequence<Key>) throws(CommandError) {
        guard mayBlock else { return }
        var room = server.limits.replyBytesMax
        for key in keys { try take(try read(key, nil), from: &room) }
    }

    /// Counts the read of a key of an update. A call that may block has counted it already, when it read each entry alone
    /// to limit their total size.
    func countRead(_ index: Int, in update: Update) { if !mayBlock { _ = update.has(index) } }

    private func take(_ record: Record?, from room: inout Int) throws(CommandError) {
        room -= record?.payloadCount ?? 0
        if room < 0 { throw .tooLongReply(server.limits) }
    }

    /// Counts the keys that have a fresh entry. A key that is given twice counts twice.
    mutating func countFresh(_ keys: [Key]) throws(CommandError) -> Int {
        if readsOrigin { return try countBehindOrigin(keys) }
        if let open = try session.snapshot() {
            if run != nil { throw Self.snapshotIsOpen }
            guard mayBlock else { throw cold() }
            var count = 0
            for key in keys where try read(key, open) != nil { count += 1 }
            return count
        }
        return try update(keys, loading: true, headersOnly: true) { update in
            keys.indices.count { update.has($0) }
        }
    }

    /// Removes the entries of the given keys.
    /// - Returns: how many of the removed entries were fresh.
    mutating func remove(_ keys: [Key]) throws(CommandError) -> Int {
        try update(keys, loading: true, headersOnly: true) { update in
            keys.indices.count { EntryChanges.remove(update, $0) }
        }
    }

    /// Runs one change of the entries with these keys. The reply waits for the commit of the change.
    /// - Parameters:
    ///   - loading: whether `body` needs the existing entries.
    ///   - headersOnly: whether `body` needs only the headers of the entries, so that their values are not loaded.
    ///   - version: the version of a change from another larder that `body` applies; nil for a client's own change.
    mutating func update<Result>(
        _ keys: [Key], loading: Bool, headersOnly: Bool = false, fillCache: Bool = true,
        observing version: ChangeVersion? = nil, _ body: (inout Update) throws(LarderError) -> Result
    ) throws(CommandError) -> Result {
        // Some events need the existing entry, because they report whether a key is new.
        let loading = loading || server.notifier.needsPrevious
        if let run {
            try checkHasNoOrigin()
            try checkIsNoOutbox()
            var result: Result?
            try run.update(database, keys) { (update) throws(LarderError) in
                prepare(&update, hasLoaded: loading)
                result = try body(&update)
            }
            return Self.made(result)
        }
        var result: Result?
        let ticket = try CommandError.wrap(
            database.perform(
                keys, !loading ? .none : headersOnly ? .headers : .records, access, now: now, fillCache: fillCache,
                observing: version
            ) {
                (update) throws(LarderError) in
                prepare(&update, hasLoaded: loading)
                result = try body(&update)
            })
        return try committed(result, ticket)
    }

    /// Stores the keys and values that alternate in the command's words from `first` on. The reply waits until all are
    /// committed.
    mutating func putPairs(from first: Int) throws(CommandError) {
        let keys = try keys(from: first, step: 2)
        let values = keys.indices.map { bytes(first + 2 * $0 + 1) }
        try update(keys, loading: false) { update in
            for (index, value) in values.enumerated() { update.put(index, payload: value) }
        }
    }

    /// Writes a long value to disk before the update that stores it. `key` must be the only key of the update. Blocks.
    /// - Returns: nil if the value is short, or must not be written ahead.
    mutating func stage(
        _ value: UnsafeRawBufferPointer, _ key: Key, rule: DeadlineRule = .governed, grace: Int64? = nil
    )
        throws(CommandError) -> LargeValue?
    {
        // Commands with long values run only where blocking is allowed. The size of transactions is limited.
        guard value.count >= Database.largeValueBytesMin, mayBlock, !isInTransaction else { return nil }
        return try CommandError.wrap(LargeValue(staging: value, key, in: database, rule: rule, grace: grace))
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

    /// Records which client and command make a change, and records loaded keys if the client tracks its reads.
    private func prepare(_ update: inout Update, hasLoaded: Bool) {
        update.origin = WriteOrigin(tag: spec?.tag.rawValue ?? 0, client: session.id)
        guard hasLoaded, session.tracking.tracksReads else { return }
        for index in 0..<update.count {
            if let header = update.header(index) { note(update.key(index), header, update.rules) }
        }
    }

    /// The command's row in the table of commands; nil for an unknown command.
    var spec: CommandMetadata? { command?.row ?? session.command.row }

    /// Records the deadline of an entry that the client may cache, so that the client can be notified when it expires.
    func note(_ key: Key, _ header: RecordHeader, _ rules: FreshnessRules) {
        guard let deadline = rules.deadline(header) else { return }
        server.tracking.didRead(Array(key.bytes), deadline: deadline)
    }

    /// Runs one change of entries of the current database and of another one; either both databases are changed or
    /// none. The other database's files are created if it is written to.
    /// - Parameter loading: whether the existing entries of each database are read. A transaction always reads them.
    mutating func update<Result>(
        _ keys: [Key], and other: Database, _ otherKeys: [Key], loading: (Bool, Bool) = (true, true),
        _ body: (inout Update, inout Update) throws(LarderError) -> Result
    ) throws(CommandError) -> Result {
        if let run {
            try checkIsNoOutbox()
            var result: Result?
            try run.update(database, keys, and: other, otherKeys) { (update, otherUpdate) throws(LarderError) in
                prepare(&update, hasLoaded: true)
                prepare(&otherUpdate, hasLoaded: true)
                result = try body(&update, &otherUpdate)
            }
            return Self.made(result)
        }
        // First try without creating files for a database that has none: they are needed only if the body writes to it.
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

    var access: Access { mayBlock ? .mayBlock : .memoryOnly }

    // MARK: The end of a command

    /// Replies with OK.
    func ok() -> Outcome {
        session.replies.simple("OK")
        return .done
    }

    /// Replies with an error, and counts it.
    func fail(_ error: CommandError) {
        session.replies.error(error.bytes)
        server.errors.count(error.bytes)
    }

    /// Replies with a number.
    func reply(_ number: some BinaryInteger) -> Outcome {
        session.replies.integer(Int64(number))
        return .done
    }

    /// Adds the command to the statistics, and to the slow log if it was slow.
    /// - Parameter begin: when the command began to run, in nanoseconds of the monotonic clock.
    func noteRun(_ row: CommandMetadata, since begin: Int64, failed: Bool) {
        session.accounting.note(row, MonotonicClock.nanoseconds() - begin, failed, count) { bytes($0) }
    }

    /// Sends the command to the clients that use MONITOR.
    func show(_ row: CommandMetadata) {
        // Administrative commands are not shown, as in Redis.
        guard !row.flags.contains(.admin), !session.record.isUnlogged.load(ordering: .relaxed) else { return }
        let secrets = row.secretRange(count) { bytes($0) }
        let line = Monitors.line(
            now: now, database: database.name, address: "unix:\(server.socketPath)", count: count
        ) { secrets.contains($0) ? CommandMetadata.redacted : bytes($0) }
        server.monitors.show(line, except: session.modes.isSilent || session.isClosing ? session.id : nil)
    }
}
