import CLarderUV
import LarderEngine
import LarderPlatform
import LarderRESP
import Synchronization

/// One libuv loop with its connections, on one thread. One iteration of the loop is called a turn.
///
/// `@unchecked Sendable`: `mailLock` guards the messages from other threads; everything else is used only on the loop's
/// thread.
final class EventLoop: CommitObserver, @unchecked Sendable {
    /// A message from another thread to the loop.
    enum Message: Sendable {
        case accept(descriptor: Int32)
        /// Close the connection with this ID, and log the reason.
        case close(Int64, String)
        case finished(Int64, WorkResult)
        case prepared(Int64, LarderError?)
        /// The deferred work of a connection was dropped, because its client had disconnected.
        case dropped(Int64)
        case returned(Int64, Pause)
        /// A waiting command of the connection with this ID can run again.
        case woken(Int64)
        /// Commits have succeeded or failed; a database's part of the journal was replayed.
        case decided, replayed
        case stop
    }

    let server: ServerState
    let pools: WorkerPools
    let loop: UnsafeMutablePointer<uv_loop_t>
    private let wakeUp: UnsafeMutablePointer<uv_async_t>
    private let afterPolling: UnsafeMutablePointer<uv_check_t>
    private let ticker: UnsafeMutablePointer<uv_timer_t>

    /// The buffer into which all connections read, one at a time.
    let readBuffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 65_536, alignment: 16)

    /// See ``TurnTime``.
    private let turnTime = UnsafeMutablePointer<TurnTime>.allocate(capacity: 1)

    private let mailLock = Lock()
    private var mail: [Message] = []
    /// Whether the loop has stopped reading messages. Later messages are dropped.
    private var isOver = false

    /// Messages for the connections of this loop.
    let pushes: PushQueue
    let commandCounter: CommandCounter
    let monitorFeed = MonitorFeed()
    private var connections: [Int64: Connection] = [:]
    // Accesses to the lists never overlap, so the check for that is turned off.
    /// Connections whose next command waits because there are too many uncommitted writes.
    @exclusivity(unchecked) private var congested: [Connection] = []
    /// Connections with replies that wait for a commit. A connection without waiting replies stays in the list until
    /// the next call of `sendDecidedReplies()`.
    @exclusivity(unchecked) private var holding: [Connection] = []
    /// Connections that may have replies to send at the end of the turn. While a list is processed, its elements are in
    /// its spare list: `spareList` for this list, `spareHolding` for `holding`. Otherwise the spare list is empty.
    @exclusivity(unchecked) private var unsent: [Connection] = []
    @exclusivity(unchecked) private var spareList: [Connection] = []
    @exclusivity(unchecked) private var spareHolding: [Connection] = []
    /// Connections whose next command waits for the end of CLIENT PAUSE, or for the replay of the journal.
    private var paused: [Connection] = []
    /// Connections whose next command waits for a value, each with the end of its wait. `waitingUntil` is the earliest
    /// of these times. All times are in milliseconds of the engine's monotonic clock.
    private var waiting: [ObjectIdentifier: (connection: Connection, until: Int64)] = [:]
    private var waitingUntil = Int64.max
    private let waitTimer: UnsafeMutablePointer<uv_timer_t>
    /// Connections whose next command runs in the next turn, after other connections were served.
    @exclusivity(unchecked) private var yielded: [Connection] = []
    /// The number of turns so far.
    @exclusivity(unchecked) private(set) var turn = 0
    private var overdue: [(Connection, reason: String)] = []
    @exclusivity(unchecked) private var hasNewWrites = false
    /// The size of the unread output of all connections at the last tick, in bytes.
    private var unreadBytes = 0
    /// Whether other threads must send a message to this loop when commits succeed or fail.
    private let awaitsDecisions = Atomic<Bool>(false)
    private var isStopping = false
    private var stopDeadline: Int64 = 0
    /// Called on every tick of the first loop.
    var onTick: (() -> Void)?
    /// Called once when the loop begins to stop.
    var onStopping: (() -> Void)?

    private static let tickMilliseconds: UInt64 = 100

    init(server: ServerState, pools: WorkerPools) {
        self.server = server
        self.pools = pools
        commandCounter = server.statistics.newCounter()
        pushes = PushQueue(server.pubsub.pending)
        turnTime.initialize(to: TurnTime())
        loop = .allocate(capacity: 1)
        wakeUp = .allocate(capacity: 1)
        afterPolling = .allocate(capacity: 1)
        ticker = .allocate(capacity: 1)
        waitTimer = .allocate(capacity: 1)
        let status = uv_loop_init(loop)
        precondition(status == 0, "uv_loop_init failed with \(status)")
        startHandles()
        server.engine.pipeline.add(observer: self)
        startPushes()
    }

    /// Sets up the queue of messages for clients. The loop empties the queue at the end of each turn, and before it
    /// runs newly received commands. So earlier messages precede the replies, except those of live queries.
    private func startPushes() {
        pushes.deliver = { [unowned self] delivery in
            if let group = delivery.monitors, let line = delivery.message.line {
                monitorFeed.append(line, group) { connections[$0] }
            }
            for id in delivery.connections { connections[id]?.push(delivery.message) }
        }
        // Called with the queue's `lock` held. `endIfIdle` removes this closure under the same lock before it closes
        // the handle, so the handle is still open here.
        pushes.onAdded { [wakeUp] in uv_async_send(wakeUp) }
    }

    deinit {
        loop.deallocate()
        wakeUp.deallocate()
        afterPolling.deallocate()
        ticker.deallocate()
        waitTimer.deallocate()
        readBuffer.deallocate()
        turnTime.deallocate()
    }

    // MARK: Handles

    private static func from(_ data: UnsafeMutableRawPointer?) -> EventLoop? {
        data.map { Unmanaged<EventLoop>.fromOpaque($0).takeUnretainedValue() }
    }

    private func startHandles() {
        // The server releases this object after the loop has stopped. The handles no longer exist then, so they need
        // not retain the object.
        let context = Unmanaged.passUnretained(self).toOpaque()
        uv_async_init(loop, wakeUp) { handle in
            EventLoop.from(handle?.pointee.data)?.readMail()
        }
        wakeUp.pointee.data = context
        uv_check_init(loop, afterPolling)
        afterPolling.pointee.data = context
        uv_check_start(afterPolling) { handle in
            // Without counting references, which would cost as much as the rest of an empty turn.
            guard let data = handle?.pointee.data else { return }
            Unmanaged<EventLoop>.fromOpaque(data)._withUnsafeGuaranteedRef { $0.endTurn() }
        }
        uv_timer_init(loop, waitTimer)
        waitTimer.pointee.data = context
        uv_timer_init(loop, ticker)
        ticker.pointee.data = context
        uv_timer_start(
            ticker, { handle in EventLoop.from(handle?.pointee.data)?.tick() }, Self.tickMilliseconds,
            Self.tickMilliseconds)
    }

    /// Runs the loop until it has received ``Message/stop`` and every connection is closed. Blocks the caller's thread.
    func run() {
        uv_run(loop, UV_RUN_DEFAULT)
        server.engine.pipeline.remove(observer: self)
        uv_loop_close(loop)
    }

    // MARK: Mail

    /// Sends a message to the loop. Thread-safe. After the loop has stopped, messages are dropped.
    func send(_ message: Message) {
        let isDropped = mailLock.withLock {
            if isOver { return true }
            if case .decided = message, case .decided = mail.last { return false }
            mail.append(message)
            // Hold the lock here, because the loop closes the handle under the same lock.
            uv_async_send(wakeUp)
            return false
        }
        if isDropped { drop(message) }
    }

    /// Frees the resources of a message that the loop will not read.
    private func drop(_ message: Message) {
        guard case .accept(let descriptor) = message else { return }
        systemClose(descriptor)
        server.clients.add(-1)
    }

    /// Wakes the loop if it waits for commits.
    func commitsDecided(upTo sequence: UInt64, failure: LarderError?) {
        // Pairs with the fence in `commitWrites`: either this thread sees that the loop waits for commits, or the loop
        // sees the result of the commit. So no result is missed.
        atomicMemoryFence(ordering: .sequentiallyConsistent)
        if awaitsDecisions.load(ordering: .relaxed) { send(.decided) }
    }

    /// Wakes the loop to continue the connections that wait because of too many uncommitted writes.
    func congestionMayBeOver() { send(.decided) }

    private func readMail() {
        let messages = mailLock.withLock { exchange(&mail, with: []) }
        for message in messages {
            switch message {
            case .accept(let descriptor): accept(descriptor)
            case .close(let id, let reason): connections[id]?.close(reason)
            case .finished(let id, let result): connections[id]?.finish(result)
            case .dropped(let id): connections[id]?.close(nil)
            case .prepared(let id, let error): connections[id]?.finishPreparing(error)
            case .returned(let id, let pause):
                // If the connection was closed in the meantime, its writes must still be committed.
                if let connection = connections[id] { connection.sessionReturned(pause) } else { noteWrites() }
            case .woken(let id): connections[id]?.wake()
            case .decided:
                sendDecidedReplies()
                resumeCongested()
                resumeYielded()
            case .replayed: resumePaused()
            case .stop: beginStopping()
            }
        }
    }

    /// Finds replies whose commits have succeeded or failed, and prepares them for sending.
    private func sendDecidedReplies() {
        swap(&holding, &spareHolding)
        for index in spareHolding.indices {
            let connection = spareHolding[index]
            connection.isListedAsHolding = false
            connection.sendDecidedReplies()
            list(connection)
        }
        spareHolding.removeAll(keepingCapacity: true)
        if holding.isEmpty { awaitsDecisions.store(false, ordering: .relaxed) }
    }

    private func resumeCongested() {
        guard !congested.isEmpty, !server.isCongested else { return }
        let waiting = congested
        congested = []
        for connection in waiting {
            connection.isListedAsCongested = false
            connection.advance()
        }
    }

    // MARK: Turns of the loop

    /// The start of this turn, in milliseconds of the monotonic clock. Makes no system call.
    var time: Int64 { Int64(truncatingIfNeeded: uv_now(loop)) }

    /// Ends a turn, after all readable input was handled. Commits the writes of all connections together, then sends
    /// all replies. So clients send their next requests at about the same time, and the next turn can handle more
    /// requests together.
    private func endTurn() {
        turn &+= 1
        turnTime.pointee.workLeft = 0
        commitWrites()
        pushes.deliverAll()
        let hasMore = pushes.deliverLive(upTo: Limits.loopLiveBytesMax)
        feedMonitors()
        closeOverdue()
        if !unsent.isEmpty {
            swap(&unsent, &spareList)
            for index in spareList.indices {
                spareList[index].isListedAsUnsent = false
                spareList[index].flush()
            }
            spareList.removeAll(keepingCapacity: true)
        }
        // The calls above may have run commands, because replies were sent or congestion ended. Commit the writes of
        // these commands in another turn.
        if hasNewWrites || hasMore || !yielded.isEmpty || !congested.isEmpty && !server.isCongested { send(.decided) }
    }

    /// Notifies connections that use MONITOR of new lines, and removes the lines that all of them have taken.
    private func feedMonitors() {
        if monitorFeed.takeNews() {
            for connection in monitorFeed.readers { connection.noteLines() }
        }
        monitorFeed.trim()
    }

    /// Closes the connections with too many unread messages. At this point, no call of a connection is in progress.
    private func closeOverdue() {
        guard !overdue.isEmpty else { return }
        let closing = overdue
        overdue = []
        for (connection, reason) in closing { connection.close(reason) }
    }

    func closeAtEndOfTurn(_ connection: Connection, _ reason: String) { overdue.append((connection, reason)) }

    /// Sends a connection's replies at the end of the turn.
    func sendAtEndOfTurn(_ connection: Connection) {
        guard !connection.isListedAsUnsent else { return }
        connection.isListedAsUnsent = true
        unsent.append(connection)
    }

    /// Commits all writes of this turn as one group. If the result is known immediately, prepares the waiting replies
    /// for sending.
    private func commitWrites() {
        guard hasNewWrites else { return }
        hasNewWrites = false
        // This thread sees the result of its own commits, so it needs no message about them.
        awaitsDecisions.store(false, ordering: .relaxed)
        let pipeline = server.engine.pipeline
        if pipeline.pendingByteCount > Limits.loopCommitBytesMax { pipeline.wake() } else { pipeline.commitNow() }
        sendDecidedReplies()
        guard !holding.isEmpty else { return }
        awaitsDecisions.store(true, ordering: .relaxed)
        // Pairs with the fence in `commitsDecided`. If a commit completed before the flag was stored, no message is
        // sent: call `sendDecidedReplies()` again to see its result.
        atomicMemoryFence(ordering: .sequentiallyConsistent)
        sendDecidedReplies()
    }

    /// The time of the last tick, in milliseconds of the monotonic clock. Other threads read it to detect a blocked
    /// loop.
    let heartbeat = Atomic<Int64>(MonotonicClock.milliseconds())

    private func tick() {
        heartbeat.store(MonotonicClock.milliseconds(), ordering: .relaxed)
        onTick?()
        let now = server.engine.monotonic()
        var unread = 0
        for connection in Array(connections.values) {
            connection.tick(time, monotonic: now)
            unread += connection.session.record.outputBytes.read()
        }
        server.unreadOutput.add(unread - unreadBytes)
        unreadBytes = unread
        resumeCongested()
        if !paused.isEmpty, !server.pause.isOn(now) { resumePaused() }
        if isStopping {
            if now >= stopDeadline {
                for connection in Array(connections.values) { connection.close("the daemon is stopping") }
            }
            endIfIdle()
        }
        // End the turn here. Otherwise libuv would first poll for input, and end the turn only after that.
        endTurn()
    }

    // MARK: Connections

    /// Prepares for the commands in bytes that a connection has received.
    func didReceive(_ count: Int) {
        commandCounter.bytesIn.add(count)
        // Messages that were published before these requests arrived precede the replies: send them now.
        pushes.deliverAll()
    }

    /// Adds a connection for a new socket. The listener has already counted the client.
    private func accept(_ descriptor: Int32) {
        guard !isStopping else { return drop(.accept(descriptor: descriptor)) }
        let id = server.newClientID()
        // Capture self strongly: a weak reference would make all reference counting of this object slower. The cycle is
        // broken when the connection is closed, because that releases the record.
        let record = ClientRecord(
            id: id, address: server.clientAddress, descriptor: descriptor, now: server.engine.now(),
            credentials: PeerCredentials(of: descriptor)
        ) { [self] reason in send(.close(id, reason)) }
        let session = Session(
            id: id, server: server, counter: commandCounter, pushes: pushes, record: record, turnTime: turnTime)
        session.waits.wakeUp = { [self] in send(.woken(id)) }
        session.waits.runElsewhere = { [pools] work in pools.brief.submit(work) }
        let connection = Connection(session, self)
        connections[session.id] = connection
        connection.open(descriptor)
    }

    func closed(_ connection: Connection) {
        let id = connection.session.id
        guard connections.removeValue(forKey: id) != nil else { return }
        monitorFeed.remove(connection)
        if connection.isListedAsCongested { congested.removeAll { $0 === connection } }
        if connection.isListedAsPaused {
            paused.removeAll { $0 === connection }
            server.clientsPaused.add(-1)
        }
        waiting[ObjectIdentifier(connection)] = nil
        if connection.isListedAsHolding { holding.removeAll { $0 === connection } }
        server.clients.add(-1)
        if isStopping { endIfIdle() }
    }

    /// Called after a connection's commands have run. Adds the connection to the lists for its new state. These lists
    /// are processed at the end of the turn.
    func note(_ connection: Connection, isCongested: Bool) {
        sendAtEndOfTurn(connection)
        if connection.takeSilentWrites() { hasNewWrites = true }
        if connection.hasHeldReplies {
            hasNewWrites = true
            list(connection)
        }
        if isCongested {
            hasNewWrites = true
            if !connection.isListedAsCongested {
                connection.isListedAsCongested = true
                congested.append(connection)
            }
        }
    }

    /// Runs the connection's next commands in the next turn.
    func noteYielded(_ connection: Connection) { yielded.append(connection) }

    private func resumeYielded() {
        guard !yielded.isEmpty else { return }
        let waiting = yielded
        yielded = []
        for connection in waiting { connection.advance() }
    }

    /// Runs the connection's command again when the command is woken, at the latest at `until` (in milliseconds of the
    /// engine's monotonic clock).
    func noteWaiting(_ connection: Connection, until: Int64) {
        waiting[ObjectIdentifier(connection)] = (connection, until)
        if until < waitingUntil { startWaitTimer(until) }
    }

    /// The minimum time between two checks of waiting connections, so that one check can end many waits.
    private static let waitStepMilliseconds: Int64 = 5

    private func startWaitTimer(_ until: Int64) {
        waitingUntil = until
        let left = max(Self.waitStepMilliseconds, until - server.engine.monotonic())
        uv_update_time(loop)
        uv_timer_start(waitTimer, { EventLoop.from($0?.pointee.data)?.endWaits() }, UInt64(left), 0)
    }

    private func endWaits() {
        let now = server.engine.monotonic()
        waitingUntil = .max
        for (connection, until) in Array(waiting.values) where until <= now {
            waiting[ObjectIdentifier(connection)] = nil
            connection.wake()
        }
        if let next = waiting.values.lazy.map(\.until).min() { startWaitTimer(next) }
        // End the turn here to send replies and commit writes. Otherwise libuv would first poll for input.
        endTurn()
    }

    /// Runs the connection's next commands after the end of CLIENT PAUSE, and when a database was replayed.
    func notePaused(_ connection: Connection) {
        guard !connection.isListedAsPaused else { return }
        connection.isListedAsPaused = true
        paused.append(connection)
        server.clientsPaused.add(1)
    }

    private func resumePaused() {
        server.noteAttention()
        let waiting = paused
        paused = []
        server.clientsPaused.add(-waiting.count)
        for connection in waiting { connection.isListedAsPaused = false }
        for connection in waiting { connection.advance() }
    }

    /// Records that there may be uncommitted writes.
    func noteWrites() { hasNewWrites = true }

    private func list(_ connection: Connection) {
        guard !connection.isListedAsHolding, connection.hasHeldReplies else { return }
        connection.isListedAsHolding = true
        holding.append(connection)
    }

    // MARK: Stopping

    private func beginStopping() {
        guard !isStopping else { return }
        isStopping = true
        _ = server.scripts.kill()
        stopDeadline = server.engine.monotonic() + server.limits.stopMilliseconds
        onStopping?()
        for connection in Array(connections.values) { connection.finishAndClose() }
        endIfIdle()
    }

    private func endIfIdle() {
        guard isStopping, connections.isEmpty else { return }
        pushes.onAdded(nil)
        let unread: [Message]? = mailLock.withLock {
            guard !isOver else { return nil }
            isOver = true
            uv_close(asHandle(wakeUp), nil)
            return exchange(&mail, with: [])
        }
        guard let unread else { return }
        for message in unread { drop(message) }
        uv_close(asHandle(afterPolling), nil)
        uv_close(asHandle(ticker), nil)
        uv_close(asHandle(waitTimer), nil)
    }
}

/// Casts a pointer to a libuv handle. All types of handles begin with the fields of `uv_handle_t`.
func asHandle<Handle>(_ handle: UnsafeMutablePointer<Handle>) -> UnsafeMutablePointer<uv_handle_t> {
    UnsafeMutableRawPointer(handle).assumingMemoryBound(to: uv_handle_t.self)
}

/// The lines of MONITOR that connections of one event loop have not taken yet. The lines are stored once for all
/// connections, and each connection has its own position in them.
///
/// All calls must be on the thread of the event loop.
final class MonitorFeed {
    private struct Chunk {
        var start: Int
        var bytes: [UInt8]
        var end: Int { start + bytes.count }
    }

    /// A chunk of at least this many bytes gets no more lines.
    private static let chunkBytes = 65_536

    private var chunks: [Chunk] = []
    /// The position after the last line, in bytes. The first line of the loop has position 0.
    private(set) var end = 0
    /// The group of connections for which the last line was added.
    private(set) var group: MonitorGroup?
    private(set) var readers: [Connection] = []
    /// Whether lines were added since the last call of ``takeNews()``.
    private var hasNews = false

    /// Adds a line for a group of connections. Connections that are new in the group begin with this line.
    /// - Parameter connection: returns the connection with an ID; nil if it was closed.
    func append(_ line: [UInt8], _ group: MonitorGroup, _ connection: (Int64) -> Connection?) {
        if group !== self.group { change(to: group, connection) }
        guard !readers.isEmpty else { return }
        if chunks.isEmpty || chunks[chunks.count - 1].bytes.count >= Self.chunkBytes {
            chunks.append(Chunk(start: end, bytes: []))
            chunks[chunks.count - 1].bytes.reserveCapacity(Self.chunkBytes + 1024)
        }
        chunks[chunks.count - 1].bytes += line
        end += line.count
        hasNews = true
    }

    private func change(to group: MonitorGroup, _ connection: (Int64) -> Connection?) {
        self.group = group
        let previous = readers
        readers = group.members.compactMap(connection)
        for reader in previous where !readers.contains(where: { $0 === reader }) { reader.feedPosition = nil }
        for reader in readers where reader.feedPosition == nil { reader.feedPosition = end }
    }

    func remove(_ connection: Connection) {
        guard connection.feedPosition != nil else { return }
        readers.removeAll { $0 === connection }
        connection.feedPosition = nil
    }

    /// - Returns: whether lines were added since the last call.
    func takeNews() -> Bool { exchange(&hasNews, with: false) }

    /// Calls `body` with the bytes from a position to the end of the chunk that contains it.
    /// - Returns: the position after these bytes.
    func read(from position: Int, _ body: (UnsafeRawBufferPointer) -> Void) -> Int {
        guard position < end, !chunks.isEmpty else { return end }
        let chunk = chunks[chunks.partitioningIndex { $0.end > position }]
        chunk.bytes.withUnsafeBytes { body(UnsafeRawBufferPointer(rebasing: $0[(position - chunk.start)...])) }
        return chunk.end
    }

    /// Removes the lines that all connections have taken.
    func trim() {
        guard !chunks.isEmpty else { return }
        guard !readers.isEmpty else {
            chunks = []
            return
        }
        let needed = readers.reduce(end) { min($0, $1.feedPosition ?? end) }
        let count = chunks.prefix { $0.end <= needed }.count
        if count == chunks.count, count == 1, chunks[0].bytes.capacity <= 2 * Self.chunkBytes {
            // Reuse the memory for the next lines.
            chunks[0].start = end
            chunks[0].bytes.removeAll(keepingCapacity: true)
        } else {
            chunks.removeFirst(count)
        }
    }
}
