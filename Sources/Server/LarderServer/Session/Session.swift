import LarderCommandCatalog
import LarderEngine
import LarderPlatform
import LarderRESP

/// One connection's state, without its socket: bytes come in, commands run, reply bytes go out.
///
/// - Replies leave in the order of the requests.
/// - A reply that depends on an uncommitted write is held, and all later replies wait behind it. If the commit fails,
///   the held replies that depend on it become errors.
/// - On an event loop no command waits for the disk. A command that must is handed, with the session and the commands
///   behind it, to a thread that may block.
/// - A command on whole databases is handed out as work; no further command runs until its answer is here.
///
/// Has one owner at a time: its event loop, a thread that runs it for the loop, or a test. `@unchecked Sendable`,
/// because it is passed from one to the other as a value; the former owner does not touch it until it is back.
package final class Session: @unchecked Sendable {
    /// Why ``run(outputBytesMax:)`` returned.
    enum Pause {
        /// All complete commands have run.
        case needsInput
        /// There is work for a thread that may block; ``finish(_:)`` takes its result.
        case work(DeferredWork)
        /// Files must be opened, created or reopened for the current command; then ``finishPreparing(_:)``.
        case prepare(Database, forWriting: Bool)
        /// The current command must read the disk: call ``runBlocking(outputBytesMax:slice:)`` on a thread that may
        /// block.
        case cold
        /// The slice is used up; run again.
        case sliceEnded
        /// Too many writes wait to be committed; run again later.
        case congested
        /// CLIENT PAUSE delays the command; run again later.
        case paused
        /// The command waits for another connection's value: run again when it is woken, or at this instant of the
        /// monotonic clock.
        case waiting(until: Int64)
        /// Too many reply bytes are unread; run again when they are sent.
        case outputFull
        /// The connection ends once the replies are sent.
        case closing
    }

    /// How much work a session may do at a time on a thread that may block.
    struct Slice {
        var commandsMax: Int
        /// No further command begins after this instant of the monotonic clock.
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
    // Reached through pointers, because each access to a stored property of a class is checked for exclusiveness at run time.
    // Used by the session's owner only.
    let parserMemory = UnsafeMutablePointer<RequestParser>.allocate(capacity: 1)
    /// The bytes of ``replyQueue``.
    let replyMemory: UnsafeMutablePointer<ReplyBuffer>
    /// The connection, as the origin of a SET.
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
    /// What the current command waits for, if that is a reply from elsewhere.
    var awaited: AwaitedReply?
    var origin = OriginAccess()
    /// Whether a command waits for others, and nobody has woken it.
    var waitsForOthers: Bool {
        if let call = origin.call { return !call.isWoken.load(ordering: .acquiring) }
        if let awaited { return awaited.value == nil }
        return fetching.waiting.map { !$0.isWoken.isSet } ?? feedWait.isWaiting
    }
    /// Whether no command waits for others any more.
    var isStopping = false
    /// Has the loop run a waiting command again. Thread-safe; nil for a session without a connection.
    var wakeUp: (@Sendable () -> Void)?
    /// Runs what would hold up the loop, for a short time, on another thread; nil for a session without a connection.
    var runElsewhere: ((@escaping @Sendable () -> Void) -> Void)?
    var isClosing = false
    /// A parsed command that has not run yet, because files had to be opened, the disk had to be read, or commits had
    /// to catch up.
    var hasCommand = false
    /// The last command that was found, and the word by which it was found.
    var lastRow: CommandMetadata?
    var lastWord = ShortWord.other
    /// Whether commands run on the session's event loop now.
    var isOnLoop = true
    /// Whether commands run on the thread that builds long values now.
    var mayBuildLong = false
    /// Whether the next command must run on that thread.
    var needsLongThread = false
    /// Whether the most frequent commands may take the fast path; tests compare both paths.
    var allowsFastPath = true
    /// What the connection's user may do; nil without rules.
    var rights: Rights?
    /// Which rules ``rights`` come from: ``AccessControl/generation``.
    var rightsGeneration = 0
    /// What the rights allow of the fast path: all of it, with `write`; runs of GET, with `read`; nil for nothing.
    var fastLevel: AccessLevel? = .write
    /// Whether no mode of the connection changes the behaviour of the common commands.
    var takesFastPath = true
    /// Whether that is so for runs of GET: more users may read than write.
    var takesFastGets = true
    /// The same in a database with an origin.
    var takesOriginGets = false

    private(set) var database: Database {
        didSet { fastDatabase = Unmanaged.passUnretained(database) }
    }
    /// ``database``, for commands so short that counting a reference would be felt: all loops would write to the same
    /// counter. Valid as long as ``database`` is not changed, and a command that uses this does not change it.
    private(set) var fastDatabase: Unmanaged<Database>
    private(set) var view = ReadingView.current {
        didSet { if case .current = view { seesCurrent = true } else { seesCurrent = false } }
    }
    /// Whether reads use the present state of the database, not a snapshot.
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
        // A connection that is lost while another thread has its session does not learn of it.
        endSubscriptions()
        if modes.tracking != nil { track(nil) }
        server.directory.remove(id)
        // If the session was on another thread when the connection was closed, nobody called `end`.
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

    /// Whether the next command is so long that it may have to wait until the disk has taken it.
    var isCommandLong: Bool { needsLongThread || hasCommand && commandBytes >= Database.largeValueBytesMin }

    /// The thread for long values waits until the former ones are in LevelDB, and gives their memory back.
    func waitForRoomToBuild() {
        if mayBuildLong, database.waitForRoomToBuild() { Allocator.giveBack() }
    }

    /// Bytes of the current command from its first word to its last.
    var commandBytes: Int {
        let (first, last) = (parser.argument(0), parser.argument(parser.argumentCount - 1))
        // The words lie in the order in which they arrived.
        guard let start = first.baseAddress, let end = last.baseAddress else { return 0 }
        return end - start + last.count
    }

    // MARK: Results of other threads

    /// The result of deferred work.
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

    /// Takes the result of ``Pause/work(_:)``; then ``run(outputBytesMax:)`` continues.
    func finish(_ result: WorkResult) {
        isWaiting = false
        result.then?(self)
        replies.raw(result.reply)
        notePending(result)
        sendPushesBehindReply()
    }

    /// Takes the result of ``Pause/prepare(_:forWriting:)``; then ``run(outputBytesMax:)`` continues with the same
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

    /// How many bytes of replies were not taken yet.
    var pendingOutput: Int { replies.count }

    /// Holds the reply that begins at `start` until its ticket is decided.
    func hold(from start: Int, _ ticket: CommitTicket) {
        if ticket != .none { replyQueue.hold(from: start, ticket) }
    }

    /// Holds replies until their ticket is decided, so that each can become an error of its own.
    func hold(_ regions: [Range<Int>], _ ticket: CommitTicket) {
        guard ticket != .none else { return }
        if isSilent { replyQueue.noteSilentWrites(ticket) } else { replyQueue.hold(regions, ticket) }
    }

    /// Gives back memory that an idle connection does not need.
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
        if origin.isLookedAt || server.origins.isUsed { findOrigin() }
    }

    func see(_ view: ReadingView) { self.view = view }

    /// The snapshot to read from; nil for the present state of the database.
    func snapshot() throws(CommandError) -> OpenSnapshot? {
        switch view {
        case .current: return nil
        case .snapshot(let open, _): return open
        case .expired:
            let seconds = server.limits.snapshotMilliseconds / 1000
            throw CommandError(
                "ERR the snapshot was open for \(seconds) s and was closed: send SNAPSHOT CLOSE to continue")
        }
    }

    /// Releases a snapshot that was open for too long.
    func expireSnapshot(monotonic: Int64) {
        if case .snapshot(_, let until) = view, monotonic >= until { view = .expired }
    }

    /// The connection is gone.
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

    /// A record's payload, or null.
    func reply(_ record: Record?) {
        guard let record else { return replies.null() }
        record.withPayload { replies.bulk($0) }
    }
}
