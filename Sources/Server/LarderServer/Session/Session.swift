import LarderCommandCatalog
import LarderEngine
import LarderPlatform
import LarderRESP
import LarderVocabulary

/// The state of one connection without its socket: the received bytes, the settings that commands have made, and the
/// replies. ``CommandRunner`` runs the commands.
///
/// - Replies are sent in the order of the requests.
/// - A reply that depends on an uncommitted write is held back, and so are all later replies. If the commit fails,
///   errors replace the replies that depend on the commit.
/// - On an event loop, commands do not block. A command that must wait for the disk moves the session to a thread that
///   may block. The thread runs this command and the next ones.
/// - A command that works on whole databases returns its work to the caller. No further command runs until the caller
///   has passed the result to ``finish(_:)``.
///
/// A session has one owner at a time: its event loop, a thread that runs it for the loop, or a test. `@unchecked
/// Sendable`: only the owner uses the session.
package final class Session: @unchecked Sendable {
    let server: ServerState
    let clock: EngineTime
    /// The statistics of the connection's commands.
    let accounting: CommandAccounting
    let replyQueue: ReplyQueue
    // Pointers, because Swift checks each access to a class's stored property for exclusivity at run time. Only for the
    // session's owner.
    let parserMemory = UnsafeMutablePointer<RequestParser>.allocate(capacity: 1)
    /// The bytes of ``replyQueue``, which owns this memory.
    let replyMemory: UnsafeMutablePointer<ReplyBuffer>

    let commandMemory = UnsafeMutablePointer<CurrentCommand>.allocate(capacity: 1)
    var thread = ThreadPlacement()
    var prechecks: Prechecks
    private(set) var database: Database
    var view = ReadingView.current { didSet { noteMode() } }
    let rights: ConnectionRights
    var modes = SessionModes() { didSet { noteMode() } }
    let tracking: TrackingState
    var subscriptions: Subscriptions
    var transactions = TransactionState() { didSet { noteTransaction() } }
    var origin = OriginAccess()
    var waits = Waits()
    var isClosing = false
    /// Whether the daemon is stopping. If so, waiting commands end immediately.
    var isStopping = false

    var record: ClientRecord { accounting.record }
    package var id: Int64 { record.id }
    /// Whether reads use the current state of the database. Otherwise they use a snapshot.
    var seesCurrent: Bool { if case .current = view { true } else { false } }
    var name: String {
        get { record.known.name }
        set { record.change { $0.name = newValue } }
    }

    /// How log lines name the client: the user's name, and the client's number.
    var logName: String { "\(record.known.user) (client \(id))" }

    /// The ID of this client if it must not get lines of MONITOR, because it receives no output now; otherwise nil.
    var unseenLines: Int64? { modes.isSilent || isClosing ? id : nil }

    /// - Parameters:
    ///   - counter: the counter of the session's loop; nil for a session without a loop.
    ///   - pushes: the queue of messages for the session's loop; nil for a session without a loop.
    ///   - record: the connection's record; nil for a session without a connection.
    ///   - turnTime: the time of the loop's turn; nil for a session without a loop.
    init(
        id: Int64, server: ServerState, counter: CommandCounter? = nil, pushes: PushQueue? = nil,
        record: ClientRecord? = nil, turnTime: UnsafeMutablePointer<TurnTime>? = nil
    ) {
        self.server = server
        clock = server.engine.clock
        let record =
            record
            ?? ClientRecord(id: id, address: server.clientAddress, descriptor: -1, now: server.engine.now()) { _ in }
        accounting = CommandAccounting(
            server: server, counter: counter ?? server.statistics.newCounter(), record: record, turnTime: turnTime)
        replyQueue = ReplyQueue(server.engine.pipeline)
        replyMemory = replyQueue.memory
        prechecks = Prechecks(
            client: id, server.standardDatabase, areUsed: !server.disabledCommands.needsChecks)
        database = server.standardDatabase
        rights = ConnectionRights(server.access, of: record, clock)
        tracking = TrackingState(server.tracking, record)
        let pushes = pushes ?? PushQueue(server.pubsub.pending)
        subscriptions = Subscriptions(Subscriber(id: id, queue: pushes), record)
        commandMemory.initialize(to: CurrentCommand())
        parserMemory.initialize(to: RequestParser(limits: server.limits.requests))
        modes.isAuthenticated = server.password == nil
        noteMode()
        renewRights()
        if server.origins.isUsed { findOrigin() }
        server.clientRegistry.add(record, pushes)
    }

    deinit {
        // If the connection was closed while another thread owned the session, `end` has not been called yet. Otherwise
        // this call has no effect.
        end()
        commandMemory.deinitialize(count: 1)
        commandMemory.deallocate()
        parserMemory.deinitialize(count: 1)
        parserMemory.deallocate()
    }

    /// Releases everything that the session uses in the server. Called when the connection is closed.
    func end() {
        isClosing = true
        endSubscriptions()
        queries.stopAll()
        if tracking.client != nil { track(nil) }
        view = .current
        transactions.discard()
        endExecution()
        endMonitoring()
        waits.end()
        server.clientRegistry.remove(id)
    }

    var command: CurrentCommand {
        get { commandMemory.pointee }
        _modify { yield &commandMemory.pointee }
    }

    package var parser: RequestParser {
        _read { yield parserMemory.pointee }
        _modify { yield &parserMemory.pointee }
    }

    var replies: ReplyBuffer {
        _read { yield replyMemory.pointee }
        _modify { yield &replyMemory.pointee }
    }

    // MARK: Commands

    /// The number of bytes of the current command, from its first word to its last.
    var commandBytes: Int { parserMemory.pointee.currentArguments().byteCount }

    /// Whether the next command must run on the thread for long values. This is so if the command builds a long value,
    /// or is so long that it may have to wait for the disk.
    var isCommandLong: Bool {
        thread.needsLongThread || command.isPending && commandBytes >= Database.largeValueBytesMin
    }

    /// On the thread for long values, waits until earlier long values are in LevelDB, and frees their memory.
    func waitForRoomToBuild() {
        if thread.mayBuildLong, database.waitForRoom(for: .build) { Allocator.giveBack() }
    }

    /// Whether a command waits for another thread or client, and has not been woken.
    var waitsForOthers: Bool {
        if let call = origin.call { return !call.isWoken.load(ordering: .acquiring) }
        return waits.areOpen
    }

    /// Whether the client has sent nothing for `milliseconds`. Never true for clients that get messages.
    func isIdle(for milliseconds: Int64) -> Bool {
        subscriptions.isEmpty && queries.isEmpty && !isMonitoring
            && clock.now() - record.lastActivity.load(ordering: .relaxed) > milliseconds
    }

    /// Ends a command whose reply starts at `start`. Discards the reply if CLIENT REPLY has switched it off.
    func endCommand(_ start: Int) {
        defer { replyQueue.keepsReply = false }
        guard modes.isSilent else { return }
        // Bytes that were already sent, such as the header of a long transaction's reply, are not discarded.
        if !replyQueue.keepsReply { replyQueue.discard(from: start) }
        modes.endCommand()
    }

    // MARK: Results of other threads

    /// Applies the result of ``Pause/work(_:)``. The next run continues with the next command.
    func finish(_ result: WorkResult) {
        command.waitsForWork = false
        result.then?(self)
        replies.raw(result.reply)
        notePending(result)
        let messages = subscriptions.behindReply
        subscriptions.behindReply = []
        for message in messages { push(message) }
    }

    /// Completes a command after its work on another thread: adds it to the statistics, and completes its reply.
    private func notePending(_ result: WorkResult) {
        guard let pending = accounting.pending else { return }
        accounting.pending = nil
        if let failure = result.failure { server.errors.count(failure.bytes) }
        let count = pending.command?.count ?? parser.argumentCount
        accounting.note(pending.row, result.nanoseconds, result.failure != nil, count) {
            pending.command?[$0] ?? parser.argument($0)
        }
        if let start = pending.start { endCommand(start) }
    }

    /// Whether the work of the current command may be dropped if its client has disconnected. Transactions are never
    /// dropped, and neither are writes of clients that have switched off replies, because these do not wait.
    var mayDropWork: Bool {
        guard let spec = accounting.pending?.row, transactions.execution == nil else { return false }
        return !modes.isSilent || !spec.flags.contains(.write)
    }

    /// Applies the result of ``Pause/prepare(_:forWriting:)``. If `error` is nil, the next run begins with the same
    /// command.
    func finishPreparing(_ error: LarderError?) {
        command.waitsForWork = false
        defer { accounting.preparing = nil }
        guard let error else { return }
        server.errors.count(CommandError(error).bytes)
        if transactions.execution != nil { return failExecution(CommandError(error)) }
        command.isPending = false
        if let row = accounting.preparing { accounting.counter.rejected(row.number) }
        replies.error(CommandError(error).bytes)
    }

    // MARK: Output

    /// Updates those fields of the record that commands do not update.
    func noteRecord() {
        record.protocolVersion.store(replies.version.rawValue, ordering: .relaxed)
        record.inputBytes.store(parser.bufferedBytes, ordering: .relaxed)
        queries.noteBytes()
    }

    /// The number of bytes of replies that are not sent yet.
    var pendingOutput: Int { replyMemory.pointee.count }

    /// Frees memory that an idle connection does not need at present.
    func reclaim() {
        parser.reclaim()
        replies.reclaim()
    }

    // MARK: The database

    func select(_ database: Database) {
        self.database = database
        prechecks.database = Unmanaged.passUnretained(database)
        tracking.client?.visit(database.name)
        record.change { $0.database = database.name }
        if rights.current != nil { noteMode() }
        if origin.needsCheck || server.origins.isUsed || CompanionName.isOne(database.name) { findOrigin() }
    }

    /// The snapshot to read from; nil for the current state of the database.
    func snapshot() throws(CommandError) -> OpenSnapshot? {
        switch view {
        case .current: return nil
        case .snapshot(let open, _): return open
        case .expired:
            let seconds = server.limits.snapshotMilliseconds / 1000
            throw CommandError(
                "ERR the snapshot expired after \(seconds) s: send SNAPSHOT CLOSE to read current entries")
        }
    }

    /// Closes the connection's snapshot if its time limit has passed.
    func expireSnapshot(monotonic: Int64) {
        if case .snapshot(_, let until) = view, monotonic >= until { view = .expired }
    }

    /// Looks up the origin of the selected database.
    func findOrigin() {
        let wasUsed = origin.needsCheck
        // Change a copy, so that the compiler need not check for overlapping accesses at run time.
        var found = origin
        found.find(database.name, in: server.origins)
        origin = found
        if origin.needsCheck || wasUsed { noteMode() }
    }

    /// Ends the current command's requests to the origin, because the command is complete, or the replies are outdated.
    func endOriginCall() {
        let hadCall = origin.call != nil
        origin.endCall()
        // If the database has no origin any more, the next commands need fewer checks.
        if hadCall, !origin.needsCheck { noteMode() }
    }

    // MARK: Rights and modes

    /// Looks up the rights again if the rules have changed. May close a connection with subscriptions.
    func renewRights() {
        guard rights.areOutdated else { return }
        rights.renew()
        noteMode()
    }

    /// Updates ``prechecks``. Call it after any change of the connection's rights, modes, snapshot, subscriptions,
    /// transaction or origin. If there are access rules, also call it after a database was selected.
    func noteMode() {
        parserMemory.pointee.isUnauthenticated = !modes.isAuthenticated
        let isPlain =
            seesCurrent && subscriptions.isEmpty && transactions.queue == nil && modes.isAuthenticated
            && !modes.isSilent && !tracking.isPerKey
        var state = prechecks
        state.update(
            isPlain: isPlain, rights.level(in: database.name), checksOrigin: origin.needsCheck,
            hasOrigin: origin.tier != nil)
        prechecks = state
    }

    /// Starts or changes CLIENT TRACKING; ends it if `client` is nil.
    func track(_ client: TrackingClient?) {
        tracking.change(to: client)
        noteMode()
        if client != nil { renewRights() }
    }

    // MARK: Transactions

    private func noteTransaction() {
        noteMode()
        transactions.note(in: record)
    }

    /// Ends a transaction whose remaining commands cannot run. The error is the reply to each of these commands.
    func failExecution(_ error: CommandError) {
        guard let execution = transactions.execution else { return }
        let count = execution.isBegun ? execution.commands.count - execution.next : 1
        for _ in 0..<count { replies.error(error.bytes) }
        endExecution()
    }

    /// Ends the transaction: releases its watches, and sends the messages that had to wait until EXEC had replied.
    func endExecution() {
        guard let execution = transactions.execution else { return }
        tracking.caching = nil
        if let script = execution.script, script.isLong { server.scripts.end(script.killSwitch) }
        execution.endWatches()
        transactions.execution = nil
        endCommand(execution.start)
        for message in execution.pushes { push(message) }
    }
}
