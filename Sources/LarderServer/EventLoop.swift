import CUV
import LarderEngine
import RESP
import Threading

/// One libuv loop with its connections, on one thread.
///
/// Everything but the mailbox is confined to the loop's thread; the mailbox is guarded by `mailLock`. That is the proof
/// for `@unchecked Sendable`.
final class EventLoop: CommitObserver, @unchecked Sendable {
    /// What other threads tell the loop.
    enum Message: Sendable {
        case accept(descriptor: Int32)
        case finished(Int64, Session.WorkResult)
        case prepared(Int64, LarderError?)
        case decided(UInt64, LarderError?)
        case stop
    }

    let server: ServerState
    let workers: WorkerPool
    let log: Log
    let loop: UnsafeMutablePointer<uv_loop_t>
    private let wakeUp: UnsafeMutablePointer<uv_async_t>
    private let afterPolling: UnsafeMutablePointer<uv_check_t>
    private let ticker: UnsafeMutablePointer<uv_timer_t>

    /// What connections read into, one at a time.
    let readBuffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 65_536, alignment: 16)

    private let mailLock = Lock()
    private var mail: [Message] = []
    /// The loop reads no more mail.
    private var isOver = false

    private var connections: [Int64: Connection] = [:]
    /// Connections whose commands wait because too much waits to be committed.
    private var congested: Set<Int64> = []
    /// Connections with replies that wait for a commit.
    private var holding: Set<Int64> = []
    private var hasNewWrites = false
    /// Commits up to this sequence are decided, as far as this loop was told.
    private var lastDecided: UInt64 = 0
    private var isStopping = false
    private var stopDeadline: Int64 = 0
    /// Called on every tick of the first loop.
    var onTick: (() -> Void)?
    /// Called once when the loop begins to stop.
    var onStopping: (() -> Void)?

    private static let tickMilliseconds: UInt64 = 100

    init(server: ServerState, workers: WorkerPool, log: Log) {
        self.server = server
        self.workers = workers
        self.log = log
        loop = .allocate(capacity: 1)
        wakeUp = .allocate(capacity: 1)
        afterPolling = .allocate(capacity: 1)
        ticker = .allocate(capacity: 1)
        let status = uv_loop_init(loop)
        precondition(status == 0, "uv_loop_init failed with \(status)")
        startHandles()
        server.engine.pipeline.add(observer: self)
    }

    deinit {
        loop.deallocate()
        wakeUp.deallocate()
        afterPolling.deallocate()
        ticker.deallocate()
        readBuffer.deallocate()
    }

    // MARK: Handles

    private static func from(_ data: UnsafeMutableRawPointer?) -> EventLoop? {
        data.map { Unmanaged<EventLoop>.fromOpaque($0).takeUnretainedValue() }
    }

    private func startHandles() {
        // The handles live as long as the loop runs, and the server keeps this object for longer: unretained is enough.
        let context = Unmanaged.passUnretained(self).toOpaque()
        uv_async_init(loop, wakeUp) { handle in
            EventLoop.from(handle?.pointee.data)?.readMail()
        }
        wakeUp.pointee.data = context
        uv_check_init(loop, afterPolling)
        afterPolling.pointee.data = context
        uv_check_start(afterPolling) { handle in
            EventLoop.from(handle?.pointee.data)?.polled()
        }
        uv_timer_init(loop, ticker)
        ticker.pointee.data = context
        uv_timer_start(
            ticker, { handle in EventLoop.from(handle?.pointee.data)?.tick() }, Self.tickMilliseconds,
            Self.tickMilliseconds)
    }

    /// Runs until ``Message/stop`` was obeyed and every connection is closed. Blocks its thread.
    func run() {
        uv_run(loop, UV_RUN_DEFAULT)
        server.engine.pipeline.remove(observer: self)
        uv_loop_close(loop)
    }

    // MARK: Mail

    /// Thread-safe. A message that comes after the loop has ended is dropped.
    func send(_ message: Message) {
        let isDropped = mailLock.withLock {
            if isOver { return true }
            // Decisions without failure that follow each other say no more than the last.
            if case .decided(_, nil) = message, case .decided(_, nil) = mail.last { mail.removeLast() }
            mail.append(message)
            // With the lock held, because the handle is closed with the lock held.
            uv_async_send(wakeUp)
            return false
        }
        if isDropped { drop(message) }
    }

    /// Gives back what a message carries that nobody will read.
    private func drop(_ message: Message) {
        guard case .accept(let descriptor) = message else { return }
        closeDescriptor(descriptor)
        server.clients.add(-1)
    }

    func commitsDecided(upTo sequence: UInt64, failure: LarderError?) { send(.decided(sequence, failure)) }

    private func readMail() {
        let messages = mailLock.withLock {
            defer { mail = [] }
            return mail
        }
        for message in messages {
            switch message {
            case .accept(let descriptor): accept(descriptor)
            case .finished(let id, let result): connections[id]?.finish(result)
            case .prepared(let id, let error): connections[id]?.finishPreparing(error)
            case .decided(let sequence, let failure): decided(sequence, failure)
            case .stop: beginStopping()
            }
        }
        wakeCommits()
    }

    private func decided(_ sequence: UInt64, _ failure: LarderError?) {
        guard sequence > lastDecided else { return }
        let sequences = lastDecided + 1...sequence
        lastDecided = sequence
        for id in holding { connections[id]?.commitsDecided(sequences, failure: failure) }
        holding = holding.filter { connections[$0]?.session.hasHeldReplies == true }
        resumeCongested()
    }

    private func resumeCongested() {
        guard !congested.isEmpty, !server.engine.pipeline.isCongested else { return }
        let waiting = congested
        congested = []
        for id in waiting { connections[id]?.advance() }
    }

    // MARK: Turns of the loop

    private func polled() { wakeCommits() }

    /// Has everything committed that the commands of this turn wrote, as one group.
    private func wakeCommits() {
        guard hasNewWrites else { return }
        hasNewWrites = false
        server.engine.pipeline.wake()
    }

    private func tick() {
        onTick?()
        let now = server.engine.monotonic()
        for connection in Array(connections.values) { connection.tick(now) }
        resumeCongested()
        // The loop polls before it comes to the check that wakes commits otherwise.
        wakeCommits()
        if isStopping {
            if now >= stopDeadline {
                for connection in Array(connections.values) { connection.close("the daemon is stopping") }
            }
            endIfIdle()
        }
    }

    // MARK: Connections

    /// Takes over a connected socket, which the listener has counted.
    private func accept(_ descriptor: Int32) {
        guard !isStopping else { return drop(.accept(descriptor: descriptor)) }
        let session = Session(id: server.newClientID(), server: server)
        let connection = Connection(session, self)
        connections[session.id] = connection
        connection.open(descriptor)
    }

    func closed(_ connection: Connection) {
        let id = connection.session.id
        guard connections.removeValue(forKey: id) != nil else { return }
        congested.remove(id)
        holding.remove(id)
        server.clients.add(-1)
        if isStopping { endIfIdle() }
    }

    /// Notes that a connection's commands wrote, or that its replies wait.
    func note(_ connection: Connection, holds: Bool, isCongested: Bool) {
        if holds {
            hasNewWrites = true
            holding.insert(connection.session.id)
        }
        if isCongested {
            hasNewWrites = true
            congested.insert(connection.session.id)
        }
    }

    // MARK: Stopping

    private func beginStopping() {
        guard !isStopping else { return }
        isStopping = true
        stopDeadline = server.engine.monotonic() + server.limits.stopMilliseconds
        onStopping?()
        for connection in Array(connections.values) { connection.finishAndClose() }
        endIfIdle()
    }

    private func endIfIdle() {
        guard isStopping, connections.isEmpty else { return }
        let unread: [Message]? = mailLock.withLock {
            guard !isOver else { return nil }
            isOver = true
            uv_close(asHandle(wakeUp), nil)
            defer { mail = [] }
            return mail
        }
        guard let unread else { return }
        for message in unread { drop(message) }
        uv_close(asHandle(afterPolling), nil)
        uv_close(asHandle(ticker), nil)
    }
}

/// libuv's handle types all begin with the fields of `uv_handle_t`, so that a pointer to one may be used as a pointer
/// to that.
func asHandle<Handle>(_ handle: UnsafeMutablePointer<Handle>) -> UnsafeMutablePointer<uv_handle_t> {
    UnsafeMutableRawPointer(handle).assumingMemoryBound(to: uv_handle_t.self)
}
