import LarderCommandCatalog
import LarderEngine
import LarderPlatform
import LarderRESP
import LarderVocabulary

/// The state of one connection without its socket. It receives bytes, runs the commands in them, and produces replies.
///
/// - Replies are sent in the order of the requests.
/// - A reply that depends on an uncommitted write is held back, and so are all replies after it. If the commit fails,
///   the replies that depend on it are replaced by errors.
/// - On an event loop, commands do not block. If a command must wait for the disk, the session is passed to a thread
///   that may block, which runs this command and the next ones.
/// - A command that works on whole databases returns its work to the caller. No further command runs until the caller
///   has passed the result to ``finish(_:)``.
///
/// A session has one owner at a time: its event loop, a thread that runs it for the loop, or a test. `@unchecked
/// Sendable`: when it is passed to another owner, the previous owner does not use it until it comes back.
package final class Session: @unchecked Sendable {
    /// Why ``run(outputBytesMax:)`` returned.
    enum Pause {
        /// All complete commands have run.
        case needsInput
        /// A thread that may block must run this work, and its result must be passed to ``finish(_:)``.
        case work(DeferredWork)
        /// This database's files must be opened, created or reopened. Then call ``finishPreparing(_:)``.
        case prepare(Database, forWriting: Bool)
        /// The current command must read the disk. Call ``runBlocking(outputBytesMax:slice:)`` on a thread that may
        /// block.
        case cold
        /// The session has used up its time on this thread; run it again.
        case sliceEnded
        /// There are too many uncommitted writes; run the session again later.
        case congested
        /// CLIENT PAUSE delays the current command; run the session again later.
        case paused
        /// The current command waits, for example for a value that another client computes. Run the session again when
        /// it is woken, and at this time of the monotonic clock (in milliseconds) at the latest.
        case waiting(until: Int64)
        /// There are too many unsent bytes of replies; run the session again after they are sent.
        case outputFull
        /// The connection must be closed after the replies are sent.
        case closing
    }

    /// The most work that a session may do on a thread that may block, before other sessions get the thread.
    struct Slice {
        var commandsMax: Int
        /// No command starts after this time of the monotonic clock, in milliseconds.
        var until: Int64
        /// Whether the thread is the one that builds long values.
        var mayBuildLong = true
    }

    package let id: Int64
    let server: ServerState
    let pipeline: CommitPipeline
    let clock: EngineTime
    /// The statistics of the connection's commands.
    let accounting: CommandAccounting
    let replyQueue: ReplyQueue
    // Pointers, because each access to a class's property is checked for exclusivity at run time. For the session's
    // owner only.
    let parserMemory = UnsafeMutablePointer<RequestParser>.allocate(capacity: 1)
    /// The bytes of ``replyQueue``, which owns this memory.
    let replyMemory: UnsafeMutablePointer<ReplyBuffer>
    /// The client and the command that are recorded with the changes of SET, created once for all of them.
    let setOrigin: WriteOrigin
    /// The queue of messages for this connection's loop.
    let pushes: PushQueue

    var modes = SessionModes() { didSet { noteMode() } }
    var subscription = SubscriptionState()
    var transactions = TransactionState() { didSet { noteTransaction() } }

    /// Whether the next command waits for work on another thread.
    var isWaiting = false
    var fetching = Fetching()
    var feedWait = FeedWait()
    /// The reply that the current command waits for and another thread will set; nil if there is none.
    var awaited: AwaitedReply?
    var origin = OriginAccess()
    /// Whether a command waits for another thread or client, and has not been woken.
    var waitsForOthers: Bool {
        if let call = origin.call { return !call.isWoken.load(ordering: .acquiring) }
        if let awaited { return awaited.value == nil }
        return fetching.waiting.map { !$0.isWoken.isSet } ?? feedWait.isWaiting
    }
    /// Whether the daemon is stopping. Commands then end instead of waiting longer.
    var isStopping = false
    /// Makes the loop run a waiting command again. Thread-safe; nil for a session without a connection.
    var wakeUp: (@Sendable () -> Void)?
    /// Runs short work on another thread, because it would block the loop; nil for a session without a connection.
    var runElsewhere: ((@escaping @Sendable () -> Void) -> Void)?
    var isClosing = false
    /// Whether a parsed command has not run yet: it waits for files, for a read of the disk, or for commits of other
    /// writes.
    var hasCommand = false
    /// The row of the last command, and the word by which it was found. A repeated command is then found without a
    /// search.
    var lastRow: CommandMetadata?
    var lastWord = ShortWord.other
    /// Whether the current thread is the session's event loop.
    var isOnLoop = true
    /// Whether the current thread is the one that builds long values.
    var mayBuildLong = false
    /// Whether the next command must run on the thread that builds long values.
    var needsLongThread = false
    /// Whether frequent commands may use the fast path. Tests switch it off to compare the results.
    var allowsFastPath = true
    /// The rights of the connection's user; nil if there are no access rules.
    var rights: Rights?
    /// The value of ``AccessControl/generation`` when ``rights`` was set. If it has changed, the rights are outdated.
    var rightsGeneration = 0
    /// The commands that may use the fast path: with `write` all of its commands, with `read` only GET, with nil none.
    var fastLevel: AccessLevel? = .write
    /// Whether frequent commands may use the fast path, because no mode of the connection affects them.
    var takesFastPath = true
    /// Whether consecutive GETs may use the fast path; this is also possible for users who may only read.
    var takesFastGets = true
    /// Whether consecutive GETs may use the fast path of a database with an origin.
    var takesOriginGets = false

    private(set) var database: Database {
        didSet { fastDatabase = Unmanaged.passUnretained(database) }
    }
    /// ``database`` without reference counting, which would make all loops write to the same counter. It is used by
    /// very short commands, and is valid until ``database`` changes.
    private(set) var fastDatabase: Unmanaged<Database>
    private(set) var view = ReadingView.current {
        didSet { if case .current = view { seesCurrent = true } else { seesCurrent = false } }
    }
    /// Whether reads use the current state of the database. Otherwise they use a snapshot.
    private(set) var seesCurrent = true

    var record: ClientRecord { accounting.record }
    var name: String {
        get { record.known.name }
        set { record.change { $0.name = newValue } }
    }

    /// - Parameters:
    ///   - counter: the counter of the session's loop; nil for a session without a loop.
    ///   - pushes: the queue of the session's loop; nil for a session without a loop.
    ///   - record: the connection's record; nil for a session without a connection.
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
        // If the connection was closed while another thread owned the session, `end` was not called: do its work here.
        endSubscriptions()
        if modes.tracking != nil { track(nil) }
        server.directory.remove(id)
        // The next calls have no effect if `end` was called.
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

    /// Whether the next command must run on the thread for long values: it is so long that it may have to wait until
    /// the disk has written it, or it builds a long value.
    var isCommandLong: Bool { needsLongThread || hasCommand && commandBytes >= Database.largeValueBytesMin }

    /// On the thread for long values, waits until earlier ones are in LevelDB. Then returns their memory to the system.
    func waitForRoomToBuild() {
        if mayBuildLong, database.waitForRoom(for: .build) { Allocator.giveBack() }
    }

    /// The number of bytes of the current command, from its first word to its last.
    var commandBytes: Int {
        let (first, last) = (parser.argument(0), parser.argument(parser.argumentCount - 1))
        // The words are in one piece of memory, in the order in which they were received.
        guard let start = first.baseAddress, let end = last.baseAddress else { return 0 }
        return end - start + last.count
    }

    // MARK: Results of other threads

    struct WorkResult: Sendable {
        let reply: [UInt8]
        let then: (@Sendable (Session) -> Void)?
        let nanoseconds: Int64
        /// The error to reply with; nil if the work has succeeded.
        let failure: CommandError?

        /// Runs the work on the calling thread.
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

    /// Applies the result of ``Pause/work(_:)``. The next ``run(outputBytesMax:)`` continues with the next command.
    func finish(_ result: WorkResult) {
        isWaiting = false
        result.then?(self)
        replies.raw(result.reply)
        notePending(result)
        sendPushesBehindReply()
    }

    /// Applies the result of ``Pause/prepare(_:forWriting:)``. If it has succeeded, the next ``run(outputBytesMax:)``
    /// runs the same command again.
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

    /// The number of bytes of replies that are not sent yet.
    var pendingOutput: Int { replies.count }

    /// Holds back the reply that starts at `start` until its commit has succeeded or failed.
    func hold(from start: Int, _ ticket: CommitTicket) {
        if ticket != .none { replyQueue.hold(from: start, ticket) }
    }

    /// Holds back several replies until their commit has succeeded or failed. Each is replaced by an error if it fails.
    func hold(_ regions: [Range<Int>], _ ticket: CommitTicket) {
        guard ticket != .none else { return }
        if isSilent { replyQueue.noteSilentWrites(ticket) } else { replyQueue.hold(regions, ticket) }
    }

    /// Frees memory that an idle connection does not need, because it can be allocated again.
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
        if origin.needsCheck || server.origins.isUsed || CompanionName.isOne(database.name) { findOrigin() }
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

    /// Closes the connection's snapshot if its time limit has passed.
    func expireSnapshot(monotonic: Int64) {
        if case .snapshot(_, let until) = view, monotonic >= until { view = .expired }
    }

    /// Releases everything that the session uses in the server. Called when the connection is closed.
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

    /// Replies with the value of an entry, or with null.
    func reply(_ record: Record?) {
        guard let record else { return replies.null() }
        record.withPayload { replies.bulk($0) }
    }
}
