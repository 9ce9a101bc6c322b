import CommandCatalog
import LarderEngine
import RESP

/// One connection's state, without its socket: bytes come in, commands run, reply bytes go out.
///
/// - Replies leave in the order of the requests.
/// - A reply that depends on what is not yet committed is held, and all that come after it wait behind it. When the
///   commit fails, the held replies that depend on it become errors.
/// - On an event loop no command waits for the disk: one that has to is handed, with the session and the commands behind
///   it, to a thread that may block.
/// - A command on whole databases is handed out as work; until its answer is here no further command runs.
///
/// Has one owner at a time: its event loop, a thread that runs it for the loop, or a test. `@unchecked Sendable`, because
/// it is handed from one to the other as a value; who gave it away touches nothing of it until it is back.
package final class Session: @unchecked Sendable {
    /// Why ``run(outputBytesMax:)`` returned.
    enum Pause {
        /// All complete commands have run.
        case needsInput
        /// Work for a thread that may block; ``finish(_:)`` takes its result.
        case work(DeferredWork)
        /// Files are to be opened, created or reopened for the current command; then ``finishPreparing(_:)``.
        case prepare(Database, forWriting: Bool)
        /// The current command must read the disk: ``runBlocking(outputBytesMax:slice:)`` on a thread that may block.
        case cold
        /// The slice is used up; run again.
        case sliceEnded
        /// Too much waits to be committed; run again later.
        case congested
        /// CLIENT PAUSE holds the command back; run again later.
        case paused
        /// Too many reply bytes are unread; run again when they are sent.
        case outputFull
        /// The connection ends once the replies are sent.
        case closing
    }

    /// How much a session may do in one go on a thread that may block.
    struct Slice {
        var commandsMax: Int
        /// No further command begins from this instant of the monotonic clock on.
        var until: Int64
        /// Whether it runs where commands go that build long values.
        var mayBuildLong = true
    }

    package let id: Int64
    let server: ServerState
    let pipeline: CommitPipeline
    private let clock: EngineTime
    let counter: CommandCounter
    /// What other threads may know of the connection.
    let record: ClientRecord
    // Reached through pointers, because each access to a stored property of a class is checked for exclusiveness at run
    // time. Allocated and freed with the session, whose owner is the only one to use them.
    let parserMemory = UnsafeMutablePointer<RequestParser>.allocate(capacity: 1)
    let replyMemory = UnsafeMutablePointer<ReplyBuffer>.allocate(capacity: 1)
    /// Commands that took their short way since ``noteQuickCommands(_:)``.
    let quickMemory = UnsafeMutablePointer<QuickCounts>.allocate(capacity: 1)
    private var held = HeldReplies()
    /// Bytes of replies that were taken away to be sent, since the beginning.
    private(set) var sentBytes = 0
    /// Whether the next command waits for another thread.
    var isWaiting = false
    var isClosing = false
    /// A parsed command that has not run yet, because files had to be opened, the disk to be read, or commits had to
    /// catch up.
    private var hasCommand = false
    private(set) var lastSpec: CommandSpec?

    private(set) var database: Database {
        didSet { quickDatabase = Unmanaged.passUnretained(database) }
    }
    /// ``database``, for commands that take so little that counting a reference would be felt: all loops would write to
    /// the same count. Valid as long as ``database`` stays what it is, which a command that uses it does not change.
    private(set) var quickDatabase: Unmanaged<Database>
    private(set) var view = ReadingView.current {
        didSet { if case .current = view { seesCurrent = true } else { seesCurrent = false } }
    }
    /// Whether reads see the database as it is.
    private(set) var seesCurrent = true
    /// Whether the commonest commands may take their short ways; tests compare both.
    var allowsQuickCommands = true
    /// Whether nothing about the connection makes common commands mean something else.
    var takesShortWays = true
    /// What CLIENT TRACKING has begun.
    var tracking: TrackingClient?
    /// What CLIENT CACHING said of the next command.
    var caching: Bool?
    /// Whether commands run on the session's event loop just now.
    private(set) var isOnLoop = true
    /// Whether they run where commands go that build long values.
    private(set) var mayBuildLong = false
    /// Whether the next command has to go there.
    var needsLongThread = false
    /// What commands of a transaction publish once it is applied.
    var published: [Publication] = []
    /// Where messages for this connection wait for its loop.
    let pushes: PushQueue
    /// What it listens to; nil for a connection that never subscribed.
    var subscriptions: Subscriptions?
    /// What MULTI has begun.
    var transaction: TransactionQueue? { didSet { noteTransaction() } }
    /// What EXEC has begun.
    var execution: Execution?
    var watches: [KeyWatch] = [] { didSet { record.watchedKeys.store(watches.count, ordering: .relaxed) } }
    /// Whether the password was given, or there is none.
    var isAuthenticated = true { didSet { noteMode() } }
    var replyMode = ReplyMode.on { didSet { noteMode() } }
    /// Whether there may be writes that no reply waits for, and that nobody has had committed.
    var hasSilentWrites = false
    /// Whether the current command's reply goes out whatever CLIENT REPLY says: as in Redis that of subscribing, which is
    /// a message like those that it brings.
    var keepsReply = false
    /// What the statistics are to be told when deferred work is done.
    var pendingNote: PendingNote?
    /// Messages that wait for the reply of the deferred command.
    var pushesBehindReply: [PushMessage] = []
    var name: String {
        get { record.known.name }
        set { record.change { $0.name = newValue } }
    }

    /// - Parameter counter: of the commands of this session's loop; nil for a session without one.
    /// - Parameter pushes: of this session's loop; nil for a session without one.
    /// - Parameter record: nil for a session without a connection.
    init(
        id: Int64, server: ServerState, counter: CommandCounter? = nil, pushes: PushQueue? = nil,
        record: ClientRecord? = nil
    ) {
        self.id = id
        self.server = server
        self.pushes = pushes ?? PushQueue(server.pubsub.pending)
        self.counter = counter ?? server.statistics.newCounter()
        self.record =
            record
            ?? ClientRecord(id: id, address: server.clientAddress, descriptor: -1, now: server.engine.now()) { _ in }
        pipeline = server.engine.pipeline
        clock = server.engine.clock
        database = server.standardDatabase
        quickDatabase = Unmanaged.passUnretained(server.standardDatabase)
        parserMemory.initialize(to: RequestParser(limits: server.limits.requests))
        replyMemory.initialize(to: ReplyBuffer())
        server.directory.add(id, self.pushes)
        quickMemory.initialize(to: QuickCounts())
        isAuthenticated = server.password == nil
        noteMode()
        server.clientRegistry.add(self.record)
    }

    deinit {
        // A connection that is lost while another thread has its session is not told of its end.
        endSubscriptions()
        if tracking != nil { track(nil) }
        server.directory.remove(id)
        // Where it was away when the connection was closed, nobody called `end`.
        endMonitoring()
        server.clientRegistry.remove(id)
        quickMemory.deallocate()
        discardTransaction()
        endExecution()
        parserMemory.deinitialize(count: 1)
        parserMemory.deallocate()
        replyMemory.deinitialize(count: 1)
        replyMemory.deallocate()
    }

    package var parser: RequestParser {
        _read { yield parserMemory.pointee }
        _modify { yield &parserMemory.pointee }
    }

    var replies: ReplyBuffer {
        _read { yield replyMemory.pointee }
        _modify { yield &replyMemory.pointee }
    }

    // MARK: Running commands

    /// Runs the commands that are complete, until one of the reasons to pause. Never waits for the disk.
    /// - Parameter outputBytesMax: no further command begins while more bytes of replies than these are not yet taken.
    func run(outputBytesMax: Int) -> Pause { run(outputBytesMax, nil) }

    /// As ``run(outputBytesMax:)`` on a thread that may block, for at most a slice: the current command first, if there is
    /// one.
    func runBlocking(outputBytesMax: Int, slice: Slice) -> Pause { run(outputBytesMax, slice) }

    private func run(_ outputBytesMax: Int, _ slice: Slice?) -> Pause {
        // A command has its own time, but for quick ones that follow each other: those share one for so much work as takes
        // far less than the millisecond that time is counted in.
        var now: Int64?
        var lastNow: Int64?
        var count = 0
        isOnLoop = slice == nil
        mayBuildLong = slice?.mayBuildLong ?? false
        if mayBuildLong { needsLongThread = false }
        if record.isKilled.load(ordering: .relaxed) { isClosing = true }
        // Where each command is to be looked at singly, none takes its short way.
        let isQuick = allowsQuickCommands && takesShortWays && !server.hasAttention.load(ordering: .relaxed)
        let sample = isQuick ? beginSample() : 0
        defer { if count > 0 { noteRun(count, lastNow, sample) } }
        while !isClosing, !isWaiting {
            if let execution {
                let time = clock.now()
                (now, lastNow) = (nil, time)
                if let pause = runExecution(execution, now: time, mayBlock: slice != nil) { return pause }
                continue
            }
            if !hasCommand {
                if let slice {
                    if count >= slice.commandsMax || clock.monotonic() >= slice.until { return .sliceEnded }
                } else if count >= Limits.loopCommandsMax {
                    return .sliceEnded
                }
                if pendingOutput > outputBytesMax { return .outputFull }
                if slice == nil, isQuick, takesShortWays, seesCurrent {
                    let time = now ?? readClock()
                    (now, lastNow) = (time, time)
                    let before = pendingOutput
                    let most = min(outputBytesMax, before + Limits.loopCopyBytesMax)
                    let done = runGets(now: time, outputBytesMax: most)
                    count += done
                    quickMemory.pointee.get += done
                    if done > 0 {
                        quickMemory.pointee.workLeft -= done + (pendingOutput - before) >> 10
                        if quickMemory.pointee.workLeft <= 0 { now = nil }
                        continue
                    }
                }
                do throws(ProtocolError) {
                    guard try parserMemory.pointee.next() else { return .needsInput }
                } catch {
                    // Where the stream is broken nothing more can be understood.
                    replies.error("ERR \(error.message)")
                    isClosing = true
                    return .closing
                }
                hasCommand = true
            }
            let time = now ?? readClock()
            (now, lastNow) = (time, time)
            if isQuick, takesShortWays, runQuickly(now: time) {
                hasCommand = false
                if quickMemory.pointee.workLeft <= 0 { now = nil }
            } else {
                now = nil
                if let pause = runCommand(now: time, mayBlock: slice != nil) {
                    if case .work = pause { count += 1 }
                    return pause
                }
            }
            count += 1
        }
        return isClosing ? .closing : .needsInput
    }

    /// The time for the next command, and for the quick ones behind it as far as ``QuickCounts/workLeft`` goes.
    @inline(__always)
    private func readClock() -> Int64 {
        quickMemory.pointee.workLeft = QuickCounts.workPerTime
        return clock.now()
    }

    /// Runs the parsed command, or says what has to happen first.
    private func runCommand(now: Int64, mayBlock: Bool) -> Pause? {
        let start = sentBytes + replies.count
        var call = Call(self, server, now: now, mayBlock: mayBlock)
        var hasStarted = false
        var found: CommandSpec?
        var begin: Int64 = 0
        do throws(CommandError) {
            let spec = try findCommand()
            found = spec
            if !isAuthenticated, !spec.flags.contains(.noAuth) {
                throw CommandError("NOAUTH Authentication required.")
            }
            if isPaused(spec) { return .paused }
            if subscriptions != nil { try checkSubscriberMode(spec) }
            if !server.monitors.isEmpty { try checkMonitoring(spec) }
            if transaction != nil, !spec.flags.contains(.inMulti) {
                try enqueue(spec)
                hasCommand = false
                endCommand(start)
                return nil
            }
            if let pause = obstacle(spec, mayBlock: mayBlock) { return pause }
            hasCommand = false
            hasStarted = true
            if tracking != nil { willRead(spec, count: parser.argumentCount) { parser.argument($0) } }
            defer { if !call.isCold { endCaching(spec) } }
            record.lastCommand.store(spec.number, ordering: .relaxed)
            begin = nanoseconds()
            switch try spec.run(&call) {
            case .done: break
            case .close: isClosing = true
            case .deferred(let work):
                isWaiting = true
                pendingNote = PendingNote(spec: spec, command: nil, start: start)
                if !server.monitors.isEmpty { show(spec, call) }
                return .work(work)
            }
            // As in Redis once it has run; EXEC behind what it runs.
            if execution == nil, !server.monitors.isEmpty { show(spec, call) }
            note(spec, call, nanoseconds: nanoseconds() - begin, failed: false)
        } catch {
            if call.isCold {
                // Nothing was done: it begins anew where it may block.
                hasCommand = true
                return .cold
            }
            hasCommand = false
            if found == nil, isOfBrowser {
                isClosing = true
                return .closing
            }
            if hasStarted, let found {
                fail(error)
                if !server.monitors.isEmpty { show(found, call) }
                note(found, call, nanoseconds: nanoseconds() - begin, failed: true)
            } else {
                reject(found, error)
            }
        }
        if isSilent { noteSilentWrites(call.ticket) } else { hold(from: start, call.ticket) }
        // A transaction goes on.
        if execution == nil { endCommand(start) } else { execution?.start = start }
        return nil
    }

    /// Answers a command that did not run.
    private func reject(_ spec: CommandSpec?, _ error: CommandError) {
        // What is wrong while commands are queued spoils the transaction; the commands that run all the same do not.
        transaction?.isAborted = true
        if let spec, spec.flags.contains(.runsTransaction) {
            // As in Redis an EXEC that may not run ends the transaction.
            discardTransaction()
            fail(.aborted(error))
        } else {
            fail(error)
        }
        if let spec = spec ?? CommandTable.find(parser.argument(0)) { counter.rejected(spec.number) }
    }

    private func fail(_ error: CommandError) {
        replies.error(error.bytes)
        server.errors.count(error.bytes)
    }

    private func findCommand() throws(CommandError) -> CommandSpec {
        let word = ShortWord(parser.argument(0))
        let spec: CommandSpec
        if let lastSpec, lastSpec.word == word {
            spec = lastSpec
        } else {
            guard let found = CommandTable.find(word) else { throw unknownCommand() }
            spec = found
            lastSpec = found
        }
        guard spec.accepts(argumentCount: parser.argumentCount) else {
            guard spec.flags.contains(.runsTransaction) else { throw .arity(spec.name) }
            // As in Redis, which discards what is queued.
            discardTransaction()
            throw .aborted(.arity(spec.name))
        }
        if !spec.subcommands.isEmpty, parser.argumentCount > 1 {
            return try spec.subcommand(parser.argument(1), count: parser.argumentCount)
        }
        return spec
    }

    /// The name and the first arguments, each cut as Redis cuts them.
    private func unknownCommand() -> CommandError {
        var arguments: [UInt8] = []
        for index in 1..<max(1, parser.argumentCount) where arguments.count < Self.shownBytesMax {
            let room = Self.shownBytesMax - arguments.count
            arguments += [UInt8(ascii: "'")] + shown(parser.argument(index), room) + Array("' ".utf8)
        }
        let name = shown(parser.argument(0), Self.shownBytesMax)
        if let subject = UnsupportedTypes.subject(of: String(decoding: name, as: UTF8.self)) {
            arguments += Array("(there are no \(subject): Larder stores strings only)".utf8)
        }
        return CommandError("ERR unknown command '", name, "', with args beginning with: ", arguments)
    }

    private static let shownBytesMax = 128

    /// Whether a word is one that HTTP begins lines with: as in Redis the connection ends then, before what a web page had
    /// a browser send here is taken for commands.
    private var isOfBrowser: Bool {
        let word = parser.argument(0)
        return equalsIgnoringCase(word, "POST") || equalsIgnoringCase(word, "HOST:")
    }

    /// What keeps a command from running on the loop now.
    private func obstacle(_ spec: CommandSpec, mayBlock: Bool) -> Pause? {
        let isWrite = spec.flags.contains(.write)
        if spec.flags.contains(.onLoop), mayBlock { return .sliceEnded }
        if isWrite || spec.flags.contains(.pubsub), server.pubsub.isCongested { return .congested }
        guard isWrite || !spec.flags.isDisjoint(with: [.readonly, .opens]), !spec.flags.contains(.wholeDatabase) else {
            return nil
        }
        if isWrite, server.engine.pipeline.isCongested { return .congested }
        if !isWrite, case .snapshot = view { return nil }
        if !mayBlock, parser.argumentCount > Limits.loopArgumentsMax || commandBytes > Limits.loopBytesMax {
            return .cold
        }
        // A database without files is created by what stores an entry, not by what would change one.
        let forWriting = isWrite && (spec.flags.contains(.creates) || database.exists)
        guard !database.isReady(forWriting: forWriting) else { return nil }
        isWaiting = true
        return .prepare(database, forWriting: forWriting)
    }

    /// Whether the command that is to run next is so long that it may have to wait until the disk takes it.
    var isCommandLong: Bool { needsLongThread || hasCommand && commandBytes >= Database.longValueBytesMin }

    /// Where long values are built one waits until the former ones are in LevelDB, and gives back what they took.
    func waitForRoomToBuild() {
        if mayBuildLong, database.waitForRoomToBuild() { Allocator.giveBack() }
    }

    /// Bytes of the current command from its first word to its last.
    private var commandBytes: Int {
        let (first, last) = (parser.argument(0), parser.argument(parser.argumentCount - 1))
        // Words lie one behind the other where they arrived.
        guard let start = first.baseAddress, let end = last.baseAddress else { return 0 }
        return end - start + last.count
    }

    // MARK: What comes back from other threads

    /// What deferred work came to.
    struct WorkResult: Sendable {
        let reply: [UInt8]
        let then: (@Sendable (Session) -> Void)?
        let nanoseconds: Int64
        /// The error that is the reply.
        let failure: CommandError?

        /// Runs work on the calling thread.
        init(_ work: DeferredWork, version: RESPVersion) {
            var buffer = ReplyBuffer(version: version)
            let begin = LarderServer.nanoseconds()
            do throws(CommandError) {
                then = try work(&buffer)
                failure = nil
            } catch {
                buffer.clear()
                buffer.error(error.bytes)
                then = nil
                failure = error
            }
            nanoseconds = LarderServer.nanoseconds() - begin
            reply = buffer.take()
        }
    }

    /// Takes the result of ``Pause/work(_:)``; then ``run(outputBytesMax:)`` goes on.
    func finish(_ result: WorkResult) {
        isWaiting = false
        result.then?(self)
        replies.raw(result.reply)
        notePending(result)
        sendPushesBehindReply()
    }

    /// Takes the result of ``Pause/prepare(_:forWriting:)``; then ``run(outputBytesMax:)`` goes on with the same command.
    func finishPreparing(_ error: LarderError?) {
        isWaiting = false
        guard let error else { return }
        server.errors.count(CommandError(error).bytes)
        if execution != nil { return failExecution(CommandError(error)) }
        hasCommand = false
        replies.error(CommandError(error).bytes)
    }

    // MARK: Output

    /// Reply bytes that are not yet taken.
    var pendingOutput: Int { replies.count }

    /// Whether replies wait for a commit.
    var hasHeldReplies: Bool { !held.isEmpty }

    /// Holds the reply that begins at `start` until its ticket is decided.
    func hold(from start: Int, _ ticket: CommitTicket) {
        guard ticket != .none else { return }
        // Whoever decides later wakes the loop, which finds the reply held.
        if pipeline.isDecided(ticket), pipeline.failure(of: ticket) == nil { return }
        held.add(start: start, end: sentBytes + replies.count, ticket)
        if pipeline.isDecided(ticket) { settle() }
    }

    /// Notes what a command wrote whose reply nobody waits for: it has to be committed all the same.
    private func noteSilentWrites(_ ticket: CommitTicket) {
        if ticket != .none, !pipeline.isDecided(ticket) { hasSilentWrites = true }
    }

    /// Holds replies until their ticket is decided, so that each can become an error of its own.
    func hold(_ regions: [Range<Int>], _ ticket: CommitTicket) {
        guard ticket != .none else { return }
        if isSilent { return noteSilentWrites(ticket) }
        if pipeline.isDecided(ticket), pipeline.failure(of: ticket) == nil { return }
        for region in regions { held.add(start: region.lowerBound, end: region.upperBound, ticket) }
        if pipeline.isDecided(ticket) { settle() }
    }

    /// How many bytes may be sent now: everything before the first held reply.
    var sendableCount: Int { held.firstStart.map { $0 - sentBytes } ?? replies.count }

    /// Forgets bytes at the front that were sent.
    func didSend(_ count: Int) {
        replies.removeFirst(count)
        sentBytes += count
    }

    /// Looks at what is decided by now: replies that waited for it become sendable, or errors.
    func settle() {
        guard !held.isEmpty else { return }
        held.settle(in: &replyMemory.pointee, sent: sentBytes) { ticket in
            guard pipeline.isDecided(ticket) else { return .open }
            guard let failure = pipeline.failure(of: ticket) else { return .committed }
            return .failed(CommandError(failure))
        }
    }

    /// Gives memory back that a connection at rest does not need.
    func reclaim() {
        parser.reclaim()
        replies.reclaim()
    }

    // MARK: What commands change

    func select(_ database: Database) {
        self.database = database
        record.change { $0.database = database.name }
    }

    func see(_ view: ReadingView) { self.view = view }

    /// The snapshot to read from; nil for the database as it is.
    func snapshot() throws(CommandError) -> OpenSnapshot? {
        switch view {
        case .current: return nil
        case .snapshot(let open, _): return open
        case .expired:
            let seconds = server.limits.snapshotMilliseconds / 1000
            throw CommandError("ERR the snapshot was open for \(seconds) s and was closed: SNAPSHOT CLOSE goes on")
        }
    }

    /// Lets a snapshot go that was open for too long.
    func expireSnapshot(monotonic: Int64) {
        if case .snapshot(_, let until) = view, monotonic >= until { view = .expired }
    }

    /// The connection is gone.
    func end() {
        isClosing = true
        endSubscriptions()
        if tracking != nil { track(nil) }
        server.directory.remove(id)
        view = .current
        discardTransaction()
        endExecution()
        endMonitoring()
        server.clientRegistry.remove(id)
    }

    /// A record's payload, or null.
    func reply(_ record: Record?) {
        guard let record else { return replies.null() }
        record.withPayload { replies.bulk($0) }
    }
}

/// At most `most` bytes of an argument for an error's text, and none from its first NUL on.
func shown(_ bytes: UnsafeRawBufferPointer, _ most: Int) -> [UInt8] {
    Array(bytes.prefix(most).prefix { $0 != 0 })
}
