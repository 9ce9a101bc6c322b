import LarderCommandCatalog
import LarderEngine
import LarderPlatform
import LarderRESP
import LarderVocabulary

/// One connection's state without its socket: bytes come in, commands run, reply bytes go out.
///
/// - Replies are sent in the order of the requests.
/// - A reply that depends on an uncommitted write is held, and all later replies wait for it. If the commit fails, the
///   held replies that depend on it become errors.
/// - On an event loop, commands do not block. A command that must wait for the disk is passed, with the session and the
///   following commands, to a thread that may block.
/// - A command on whole databases is returned as work; no further command runs until its result is back.
///
/// It has one owner at a time: its event loop, a thread that runs it for the loop, or a test. `@unchecked Sendable`: it
/// is passed between owners as a value, and the previous owner does not use it until it is returned.
package final class Session: @unchecked Sendable {
    /// Why ``run(outputBytesMax:)`` returned.
    enum Pause {
        /// All complete commands have run.
        case needsInput
        /// There is work for a thread that may block; pass its result to ``finish(_:)``.
        case work(DeferredWork)
        /// Files must be opened, created or reopened for the current command; then call ``finishPreparing(_:)``.
        case prepare(Database, forWriting: Bool)
        /// The current command must read the disk: call ``runBlocking(outputBytesMax:slice:)`` on a thread that may
        /// block.
        case cold
        /// The time slice is used up; run again.
        case sliceEnded
        /// Too many uncommitted writes; run again later.
        case congested
        /// CLIENT PAUSE delays the command; run again later.
        case paused
        /// The command waits for another connection's value: run again when it is woken, or at this time of the
        /// monotonic clock.
        case waiting(until: Int64)
        /// Too many unsent reply bytes; run again after they are sent.
        case outputFull
        /// The connection is closed after the replies are sent.
        case closing
    }

    /// The most work that a session may do before it yields a thread that may block.
    struct Slice {
        var commandsMax: Int
        /// No further command starts after this time of the monotonic clock.
        var until: Int64
        /// Whether this is the thread that builds long values.
        var mayBuildLong = true
    }

    package let id: Int64
    let server: ServerState
    let pipeline: CommitPipeline
    let clock: EngineTime
    /// The counts of its commands.
    let accounting: CommandAccounting
    let replyQueue: ReplyQueue
    // Pointers, because each access to a class's stored property is checked for exclusivity at run time. Used by the
    // session's owner only.
    let parserMemory = UnsafeMutablePointer<RequestParser>.allocate(capacity: 1)
    /// The bytes of ``replyQueue``.
    let replyMemory: UnsafeMutablePointer<ReplyBuffer>
    /// This connection, as recorded in the changes of SET.
    let setOrigin: WriteOrigin
    /// The queue of messages for this connection's loop.
    let pushes: PushQueue

    var modes = SessionModes() { didSet { noteMode() } }
    var subscription = SubscriptionState()
    var transactions = TransactionState() { didSet { noteTransaction() } }

    /// Whether the next command waits for another thread.
    var isWaiting = false
    var fetching = Fetching()
    var feedWait = FeedWait()
    /// The reply from another thread that the current command waits for.
    var awaited: AwaitedReply?
    var origin = OriginAccess()
    /// Whether a command waits and was not woken.
    var waitsForOthers: Bool {
        if let call = origin.call { return !call.isWoken.load(ordering: .acquiring) }
        if let awaited { return awaited.value == nil }
        return fetching.waiting.map { !$0.isWoken.isSet } ?? feedWait.isWaiting
    }
    /// Whether commands must not wait any more.
    var isStopping = false
    /// Makes the loop run a waiting command again. Thread-safe; nil for a session without a connection.
    var wakeUp: (@Sendable () -> Void)?
    /// Runs short work that would block the loop on another thread; nil for a session without a connection.
    var runElsewhere: ((@escaping @Sendable () -> Void) -> Void)?
    var isClosing = false
    /// Whether a parsed command has not run yet, because files must be opened, the disk must be read, or there are too
    /// many uncommitted writes.
    var hasCommand = false
    /// The last command looked up, and the word by which it was found.
    var lastRow: CommandMetadata?
    var lastWord = ShortWord.other
    /// Whether commands run on the session's event loop now.
    var isOnLoop = true
    /// Whether commands run on the thread that builds long values now.
    var mayBuildLong = false
    /// Whether the next command must run on the thread that builds long values.
    var needsLongThread = false
    /// Whether frequent commands may use the fast path; tests compare both paths.
    var allowsFastPath = true
    /// The rights of the connection's user; nil without rules.
    var rights: Rights?
    /// The ``AccessControl/generation`` of ``rights``.
    var rightsGeneration = 0
    /// The fast-path commands that the rights allow: all commands with `write`, only consecutive GETs with `read`, none
    /// with nil.
    var fastLevel: AccessLevel? = .write
    /// Whether common commands may use the fast path, because no mode of the connection affects them.
    var takesFastPath = true
    /// Like ``takesFastPath``, for consecutive GETs: more users may read than write.
    var takesFastGets = true
    /// Like ``takesFastGets``, in a database with an origin.
    var takesOriginGets = false

    private(set) var database: Database {
        didSet { fastDatabase = Unmanaged.passUnretained(database) }
    }
    /// ``database`` without reference counting, which would make all loops write to the same counter. For very short
    /// commands. Valid until ``database`` changes; the commands that use this do not change it.
    private(set) var fastDatabase: Unmanaged<Database>
    private(set) var view = ReadingView.current {
        didSet { if case .current = view { seesCurrent = true } else { seesCurrent = false } }
    }
    /// Whether reads use the current state of the database, not a snapshot.
    private(set) var seesCurrent = true

    var record: ClientRecord { accounting.record }
    var name: String {
        get { record.known.name }
        set { record.change { $0.name = newValue } }
    }

    /// - Parameter counter: the counter of this session's loop; nil for a session without one.
    /// - Parameter pushes: the queue of this session's loop; nil for a session without one.
    /// - Parameter record: nil for a session without a connection.
    init(
        id: Int64, server: ServerState, counter: CommandCounter? = nil, pushes: PushQueue? = nil,
        record: ClientRecord? = nil
    ) {
        self.id = id
        self.server = server
        setOrigin = WriteOrigin(tag: WriteTag.set.rawValue, client: id)
        self.pushes = pushes ?? PushQueue(server.pubsub.pending)
        accounting = CommandAccounting(
            server: server, counter: counter ?? server.statistics.newCounter(),
            record: record
                ?? ClientRecord(id: id, address: server.clientAddress, descriptor: -1, now: server.engine.now()) { _ in
                })
        pipeline = server.engine.pipeline
        replyQueue = ReplyQueue(pipeline)
        replyMemory = replyQueue.memory
        clock = server.engine.clock
        database = server.standardDatabase
        fastDatabase = Unmanaged.passUnretained(server.standardDatabase)
        parserMemory.initialize(to: RequestParser(limits: server.limits.requests))
        server.directory.add(id, self.pushes)
        modes.isAuthenticated = server.password == nil
        allowsFastPath = !server.disabledCommands.mayHaveFastPath
        noteMode()
        renewRights()
        if server.origins.isUsed { findOrigin() }
        server.clientRegistry.add(self.record)
    }

    deinit {
        // If a connection was closed while another thread had its session, `end` was not called.
        endSubscriptions()
        if modes.tracking != nil { track(nil) }
        server.directory.remove(id)
        // Like the subscriptions, these are still active if `end` was not called.
        endMonitoring()
        fetching.end(elsewhere: runElsewhere)
        feedWait.stop()
        server.clientRegistry.remove(id)
        transactions.discard()
        endExecution()
        parserMemory.deinitialize(count: 1)
        parserMemory.deallocate()
    }

    package var parser: RequestParser {
        _read { yield parserMemory.pointee }
        _modify { yield &parserMemory.pointee }
    }

    var replies: ReplyBuffer {
        _read { yield replyMemory.pointee }
        _modify { yield &replyMemory.pointee }
    }

    /// Whether the next command is so long that it may have to wait for the disk to write it.
    var isCommandLong: Bool { needsLongThread || hasCommand && commandBytes >= Database.largeValueBytesMin }

    /// On the thread for long values, waits until the previous values are in LevelDB, and returns their memory to the
    /// system.
    func waitForRoomToBuild() {
        if mayBuildLong, database.waitForRoomToBuild() { Allocator.giveBack() }
    }

    /// The bytes of the current command from its first word to its last.
    var commandBytes: Int {
        let (first, last) = (parser.argument(0), parser.argument(parser.argumentCount - 1))
        // The words are contiguous in memory, in the order in which they arrived.
        guard let start = first.baseAddress, let end = last.baseAddress else { return 0 }
        return end - start + last.count
    }

    // MARK: Results of other threads

    struct WorkResult: Sendable {
        let reply: [UInt8]
        let then: (@Sendable (Session) -> Void)?
        let nanoseconds: Int64
        /// The error to reply.
        let failure: CommandError?

        /// Runs work on the calling thread.
        init(_ work: DeferredWork, version: RESPVersion) {
            var buffer = ReplyBuffer(version: version)
            let begin = MonotonicClock.nanoseconds()
            do throws(CommandError) {
                then = try work(&buffer)
                failure = nil
            } catch {
                buffer.clear()
                buffer.error(error.bytes)
                then = nil
                failure = error
            }
            nanoseconds = MonotonicClock.nanoseconds() - begin
            reply = buffer.take()
        }
    }

    /// Applies the result of ``Pause/work(_:)``; then ``run(outputBytesMax:)`` continues.
    func finish(_ result: WorkResult) {
        isWaiting = false
        result.then?(self)
        replies.raw(result.reply)
        notePending(result)
        sendPushesBehindReply()
    }

    /// Applies the result of ``Pause/prepare(_:forWriting:)``; then ``run(outputBytesMax:)`` continues with the same
    /// command.
    func finishPreparing(_ error: LarderError?) {
        isWaiting = false
        defer { accounting.preparing = nil }
        guard let error else { return }
        server.errors.count(CommandError(error).bytes)
        if transactions.execution != nil { return failExecution(CommandError(error)) }
        hasCommand = false
        if let row = accounting.preparing { accounting.counter.rejected(row.number) }
        replies.error(CommandError(error).bytes)
    }

    // MARK: Output

    /// The number of reply bytes not taken yet.
    var pendingOutput: Int { replies.count }

    /// Holds the reply that starts at `start` until its commit has succeeded or failed.
    func hold(from start: Int, _ ticket: CommitTicket) {
        if ticket != .none { replyQueue.hold(from: start, ticket) }
    }

    /// Holds replies until their commit has succeeded or failed, so that each can be replaced by an error.
    func hold(_ regions: [Range<Int>], _ ticket: CommitTicket) {
        guard ticket != .none else { return }
        if isSilent { replyQueue.noteSilentWrites(ticket) } else { replyQueue.hold(regions, ticket) }
    }

    /// Frees memory that an idle connection does not need.
    func reclaim() {
        parser.reclaim()
        replies.reclaim()
    }

    // MARK: State that commands change

    func select(_ database: Database) {
        self.database = database
        modes.tracking?.visit(database.name)
        record.change { $0.database = database.name }
        if rights != nil { noteFastRights() }
        if origin.isLookedAt || server.origins.isUsed || CompanionName.isOne(database.name) { findOrigin() }
    }

    func see(_ view: ReadingView) { self.view = view }

    /// The snapshot to read from; nil for the current state of the database.
    func snapshot() throws(CommandError) -> OpenSnapshot? {
        switch view {
        case .current: return nil
        case .snapshot(let open, _): return open
        case .expired:
            let seconds = server.limits.snapshotMilliseconds / 1000
            throw CommandError(
                "ERR the snapshot was closed after \(seconds) s: send SNAPSHOT CLOSE to continue")
        }
    }

    /// Closes a snapshot that was open for too long.
    func expireSnapshot(monotonic: Int64) {
        if case .snapshot(_, let until) = view, monotonic >= until { view = .expired }
    }

    /// Called when the connection is closed.
    func end() {
        isClosing = true
        endSubscriptions()
        if modes.tracking != nil { track(nil) }
        server.directory.remove(id)
        view = .current
        transactions.discard()
        endExecution()
        endMonitoring()
        fetching.end(elsewhere: runElsewhere)
        feedWait.stop()
        server.clientRegistry.remove(id)
    }

    /// Replies with a record's payload, or null.
    func reply(_ record: Record?) {
        guard let record else { return replies.null() }
        record.withPayload { replies.bulk($0) }
    }
}
