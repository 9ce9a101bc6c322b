import CLarderUV
import LarderEngine
import LarderPlatform
import LarderRESP

/// The socket of one connection: passes the received bytes to the session, and sends the session's output.
///
/// All calls must be on the thread of its event loop.
final class Connection {
    /// The state of the received commands.
    private enum Progress {
        /// All complete commands have run.
        case idle
        /// Commands are running on the loop's thread.
        case running
        /// The next command waits for work on another thread; the session is still owned by the loop.
        case working
        /// The commands run on another thread, which owns the session: the loop must not touch it.
        case away
        /// The next command waits because there are too many uncommitted writes.
        case congested
        /// The next command waits until the loop has served other connections.
        case yielded
        /// The next command waits until CLIENT PAUSE is over, or until its database is replayed.
        case paused
        /// The next command waits for a value that another connection or an origin must supply first.
        case waiting
        /// The next command waits until the client has read its replies.
        case full
        /// No more commands will run.
        case closing
    }

    let session: Session
    /// Unmanaged, because reference counting would be a large part of the cost of a small request. The loop outlives its
    /// connections: it stops after the last connection is closed, and is released after that.
    private let unmanagedLoop: Unmanaged<EventLoop>
    private var eventLoop: EventLoop { unmanagedLoop.takeUnretainedValue() }
    private let pipe: UnsafeMutablePointer<uv_pipe_t>
    /// The socket's descriptor. libuv closes it with the handle `pipe`.
    private var descriptor: Int32 = -1
    private var progress = Progress.idle
    /// Whether the connection is in the loop's list `holding`: see ``EventLoop/note(_:isCongested:)``.
    var isListedAsHolding = false
    var isListedAsUnsent = false
    var isListedAsCongested = false
    var isListedAsPaused = false
    private var isReading = false
    private var isWriting = false
    /// The size of the output that libuv is sending, in bytes.
    private var writingBytes = 0
    private var isClosed = false
    /// Whether the client has closed its sending side. Requests that it sent before still get replies.
    private var hasEnded = false
    private var isFinishing = false
    private var lastProgress: Int64 = 0
    /// The loop's turn in which the connection last read. `readsInTurn` is the number of its reads in that turn.
    private var readTurn = 0
    private var readsInTurn = 0
    /// Messages for the client that arrived while another thread owned the session. `waitingPushBytes` is their size.
    private var waitingPushes: [PushMessage] = []
    private var waitingPushBytes = 0
    /// The size of the messages that were added to the output since the output was last empty, in bytes.
    private var pushedBytes = 0
    /// The position in the loop's ``MonitorFeed`` up to which lines were taken; nil if the client does not use MONITOR.
    var feedPosition: Int?
    /// Whether the connection is about to be closed, because its client has too many unread messages.
    private var isOverdue = false
    /// Since when the unread messages have exceeded the soft limit, by the loop's time; nil if they do not exceed it.
    private var overSoftLimitSince: Int64?
    /// The number of ticks of the loop since the last read.
    private var quietTicks = 0

    /// The number of ticks without input after which a connection frees memory. It is allocated again on demand.
    private static let ticksUntilReclaim = 20
    /// The size in bytes at which replies are sent without waiting for the end of the turn.
    private static let flushBytes = 65_536
    /// The maximum number of times that one connection sends replies in a turn. Without this limit, a client that reads
    /// as fast as it is served would keep the loop from serving other connections.
    private static let flushesPerTurn = 16
    /// The maximum number of bytes that are sent at once, for the same reason: a long reply is sent in several turns.
    private static let flushBytesMax = 1 << 20
    /// The maximum number of bytes of one uv_write. The bytes are copied: without a limit, all replies to a slow client
    /// would be copied.
    private static let writeBytes = 262_144

    init(_ session: Session, _ eventLoop: EventLoop) {
        self.session = session
        unmanagedLoop = .passUnretained(eventLoop)
        pipe = .allocate(capacity: 1)
    }

    deinit { pipe.deallocate() }

    /// Runs `body` with the connection that a libuv handle points to. `open` retains the connection until the handle's
    /// close callback, so the pointer is valid, and references need not be counted here.
    private static func with<Handle>(_ handle: UnsafeMutablePointer<Handle>?, _ body: (Connection) -> Void) {
        guard let handle, let data = asHandle(handle).pointee.data else { return }
        Unmanaged<Connection>.fromOpaque(data)._withUnsafeGuaranteedRef(body)
    }

    private var isAway: Bool { progress == .away }

    var hasHeldReplies: Bool { !isClosed && !isAway && session.replyQueue.hasHeld }

    /// Returns whether commands without a reply have written entries since the last call of this function.
    func takeSilentWrites() -> Bool {
        guard !isAway, session.replyQueue.hasSilentWrites else { return false }
        session.replyQueue.hasSilentWrites = false
        return true
    }

    private var stream: UnsafeMutablePointer<uv_stream_t> {
        UnsafeMutableRawPointer(pipe).assumingMemoryBound(to: uv_stream_t.self)
    }

    // MARK: Opening and closing

    func open(_ descriptor: Int32) {
        uv_pipe_init(eventLoop.loop, pipe, 0)
        pipe.pointee.data = Unmanaged.passRetained(self).toOpaque()
        lastProgress = eventLoop.time
        let status = uv_pipe_open(pipe, descriptor)
        guard status == 0 else {
            systemClose(descriptor)
            return close("uv_pipe_open: \(errorText(status))")
        }
        self.descriptor = descriptor
        startReading()
    }

    /// Closes the socket immediately. Has no effect if the socket is closed already.
    /// - Parameter reason: text for the log; nil to log nothing.
    func close(_ reason: String?) {
        guard !isClosed else { return }
        isClosed = true
        session.record.isClosed.store(true, ordering: .releasing)
        if let reason { eventLoop.server.closedLines.add(.info, "client \(session.id) disconnected: \(reason)") }
        if !isAway { session.end() }
        uv_close(asHandle(pipe)) { handle in
            guard let data = handle?.pointee.data else { return }
            Unmanaged<Connection>.fromOpaque(data).release()
        }
        eventLoop.closed(self)
    }

    /// Replies to the received requests, then closes.
    func finishAndClose() {
        isFinishing = true
        session.isStopping = true
        adjustReading()
        advance()
    }

    // MARK: Reading

    /// Starts or stops reading, depending on whether the session can take more input. Some input is read even while
    /// many replies are unread, because many clients send all their requests before they read the first reply.
    private func adjustReading() {
        let isWanted =
            switch progress {
            case .idle: true
            case .full: session.parser.bufferedBytes < eventLoop.server.limits.inputBytesPause
            case .running, .working, .away, .congested, .yielded, .paused, .waiting, .closing: false
            }
        if isWanted, !isClosed, !hasEnded, !isFinishing { startReading() } else { stopReading() }
    }

    private func startReading() {
        guard !isReading else { return }
        isReading = true
        uv_read_start(
            stream,
            { handle, _, buffer in Connection.with(handle) { $0.provide(buffer) } },
            { handle, count, buffer in Connection.with(handle) { $0.didRead(count, buffer?.pointee) } })
    }

    private func stopReading() {
        guard isReading else { return }
        isReading = false
        if !isClosed { uv_read_stop(stream) }
    }

    /// Passes the loop's buffer to libuv for the next read. All connections of the loop can share it, because libuv
    /// calls ``didRead(_:_:)`` immediately after each read. So an idle connection needs no buffer.
    private func provide(_ buffer: UnsafeMutablePointer<uv_buf_t>?) {
        let space = unmanagedLoop._withUnsafeGuaranteedRef { $0.readBuffer }
        buffer?.pointee = uv_buf_init(space.baseAddress?.assumingMemoryBound(to: CChar.self), UInt32(space.count))
    }

    private func didRead(_ count: Int, _ buffer: uv_buf_t?) {
        guard count != 0, !isClosed else { return }
        quietTicks = 0
        if count < 0 {
            hasEnded = true
            if count != Int(UV_EOF.rawValue) { return close(nil) }
        } else {
            // libuv has just read `count` bytes into the loop's buffer, where they stay valid until this call returns.
            session.parserMemory.pointee.borrow(UnsafeMutableRawBufferPointer(start: buffer?.base, count: count))
        }
        unmanagedLoop._withUnsafeGuaranteedRef { $0.didReceive(max(0, count)) }
        advance()
        yieldAfterReads()
    }

    /// Stops reading after several reads in one turn, so that other connections are served. libuv would otherwise
    /// continue to read as long as the client sends.
    private func yieldAfterReads() {
        let turn = unmanagedLoop._withUnsafeGuaranteedRef { $0.turn }
        if readTurn != turn { (readTurn, readsInTurn) = (turn, 0) }
        readsInTurn += 1
        guard readsInTurn >= Limits.loopReadsMax, progress == .idle, !isClosed, !hasEnded else { return }
        progress = yield()
        adjustReading()
    }

    // MARK: Commands

    /// Runs the commands that can run now, and arranges to send their replies.
    func advance() { advance(nil) }

    /// Runs a command in the state `waiting` again.
    func wake() { if progress == .waiting { advance() } }

    /// - Parameter pause: why the session stopped on another thread; nil if it was not on another thread.
    private func advance(_ pause: Pause?) {
        guard !isClosed, progress != .working, progress != .away else { return }
        takeLines(upTo: session.server.limits.outputBytesPause)
        progress = .running
        let next = runCommands(pause)
        // Copy the bytes of incomplete commands: other connections will overwrite the loop's buffer.
        session.parserMemory.pointee.endBorrowing()
        guard !isClosed else { return eventLoop.noteWrites() }
        progress = next == .away ? .running : next
        unmanagedLoop._withUnsafeGuaranteedRef { $0.note(self, isCongested: progress == .congested) }
        if next == .away {
            flush()
            guard !isClosed else { return }
            handOver()
        }
        adjustReading()
    }

    private func runCommands(_ first: Pause?) -> Progress {
        let outputMax = session.server.limits.outputBytesPause
        var limit = min(outputMax, Self.flushBytes)
        var flushesLeft = Self.flushesPerTurn
        var isOfOtherThread = first != nil
        var pause = first ?? CommandRunner(session).run(outputBytesMax: limit)
        while true {
            switch pause {
            case .needsInput: return .idle
            case .work(let work):
                submit(work)
                return .working
            case .prepare(let database, let forWriting):
                prepare(database, forWriting)
                return .working
            case .cold: return .away
            case .congested: return .congested
            case .paused:
                eventLoop.notePaused(self)
                return .paused
            case .waiting(let until):
                // If the command was woken while another thread owned the session, run it immediately, below.
                guard !isFinishing, session.waitsForOthers else { break }
                eventLoop.noteWaiting(self, until: until)
                return .waiting
            case .closing: return .closing
            case .sliceEnded:
                // A time slice has ended. If it was on another thread, continue here. If it was on this thread, yield.
                if !isOfOtherThread { return yield() }
            case .outputFull:
                flush()
                if isClosed { return .closing }
                if session.pendingOutput > outputMax || isWriting && hasUntakenLines { return .full }
                flushesLeft -= 1
                if flushesLeft == 0 { return yield() }
                limit = min(outputMax, session.pendingOutput + Self.flushBytes)
            }
            isOfOtherThread = false
            pause = CommandRunner(session).run(outputBytesMax: limit)
        }
    }

    /// Lets the loop serve its other connections before the next command of this one.
    private func yield() -> Progress {
        eventLoop.noteYielded(self)
        return .yielded
    }

    /// Passes the session to a thread that may block. The session comes back with ``sessionReturned(_:)``.
    private func handOver() {
        progress = .away
        let limits = eventLoop.server.limits
        let outputMax = session.pendingOutput + Self.flushBytes
        let pools = eventLoop.pools
        let isLong = session.isCommandLong
        let isScript = session.transactions.execution?.needsScriptThread ?? false
        let pool = isScript ? pools.scripts : isLong ? pools.long : pools.cold
        pool.submit { [eventLoop, session] in
            session.server.beforeColdSlice?()
            let until = session.server.engine.monotonic() + limits.coldSliceMilliseconds
            let pause = CommandRunner(session).run(
                outputBytesMax: outputMax,
                slice: CommandRunner.Slice(
                    commandsMax: limits.coldSliceCommands, until: until, mayBuildLong: isLong || isScript))
            eventLoop.send(.returned(session.id, pause))
        }
    }

    /// Continues on the loop's thread after another thread has returned the session.
    func sessionReturned(_ pause: Pause) {
        progress = .running
        // While the session was away, commits may have succeeded or failed.
        session.replyQueue.releaseDecided()
        let pushes = waitingPushes
        waitingPushes = []
        waitingPushBytes = 0
        for message in pushes { push(message) }
        advance(pause)
    }

    private func submit(_ work: @escaping DeferredWork) {
        let version = session.replies.version
        let spec = session.accounting.pending?.row
        let (id, record, server) = (session.id, session.record, session.server)
        let isDroppable = session.mayDropWork
        let begin = MonotonicClock.nanoseconds()
        eventLoop.pools.pool(for: spec, isLong: session.command.isLongQuery).submit(
            unless: { isDroppable && record.isGone },
            drop: { [eventLoop] in
                server.commandsDropped.add(1)
                eventLoop.send(.dropped(id))
            },
            { [eventLoop] in
                server.beforeWork?(spec?.name ?? "")
                eventLoop.send(.finished(id, WorkResult(work, version: version, since: begin)))
            })
    }

    private func prepare(_ database: Database, _ forWriting: Bool) {
        eventLoop.pools.brief.submit { [eventLoop, id = session.id] in
            var failure: LarderError?
            do throws(LarderError) { try database.prepare(forWriting: forWriting) } catch { failure = error }
            eventLoop.send(.prepared(id, failure))
        }
    }

    func finish(_ result: WorkResult) {
        takeLines(upTo: eventLoop.server.limits.outputBytesPause)
        session.finish(result)
        progress = .running
        advance()
    }

    func finishPreparing(_ error: LarderError?) {
        session.finishPreparing(error)
        progress = .running
        advance()
    }

    /// Checks which commits have succeeded or failed, and arranges to send the replies that waited for these commits.
    func sendDecidedReplies() {
        guard !isClosed, !isAway else { return }
        session.replyQueue.releaseDecided()
        eventLoop.sendAtEndOfTurn(self)
        if progress == .full { advance() }
    }

    // MARK: Messages

    /// Adds a message for the client. A client with too many unread messages is disconnected at the end of the loop's
    /// turn.
    func push(_ message: PushMessage) {
        guard !isClosed, !isOverdue else { return }
        if isAway {
            waitingPushes.append(message)
            waitingPushBytes += message.byteCount
        } else {
            takeLines(upTo: .max)
            pushedBytes += message.byteCount
            session.push(message)
            eventLoop.sendAtEndOfTurn(self)
        }
        checkUnread()
    }

    private func checkUnread() {
        let lines = feedPosition.map { eventLoop.monitorFeed.end - $0 } ?? 0
        let unread = lines + waitingPushBytes + (isAway ? 0 : min(pushedBytes, session.pendingOutput))
        let most = eventLoop.server.settings.subscriberBytesMax.read()
        guard most > 0, unread > most else { return }
        isOverdue = true
        eventLoop.closeAtEndOfTurn(
            self, "\(unread) bytes of messages were unread, the limit is \(most) (--max-subscriber-output)")
    }

    /// Called when there are new lines of MONITOR for the client.
    func noteLines() {
        guard !isClosed, !isOverdue else { return }
        if !isWriting, !isAway { eventLoop.sendAtEndOfTurn(self) }
        checkUnread()
    }

    private var hasUntakenLines: Bool { feedPosition.map { $0 < eventLoop.monitorFeed.end } ?? false }

    /// Appends lines of MONITOR from the loop's feed to the output, until at least `bytesMax` bytes are unsent.
    private func takeLines(upTo bytesMax: Int) {
        guard let position = feedPosition, !isAway, session.transactions.execution == nil else { return }
        let feed = eventLoop.monitorFeed
        // A client that has switched off replies (CLIENT REPLY) gets no lines either.
        guard !session.modes.isSilent else {
            feedPosition = feed.end
            return
        }
        var taken = position
        while taken < feed.end, session.pendingOutput < bytesMax {
            taken = feed.read(from: taken) { session.replyMemory.pointee.raw($0) }
        }
        pushedBytes += taken - position
        feedPosition = taken
    }

    /// Whether the unread messages of a subscriber have exceeded the soft limit for longer than allowed.
    private func isOverSoftLimit(_ time: Int64) -> Bool {
        let settings = eventLoop.server.settings
        let most = settings.subscriberBytesSoft.read()
        guard most > 0, !session.subscriptions.isEmpty, session.pendingOutput > most else {
            overSoftLimitSince = nil
            return false
        }
        let since = overSoftLimitSince ?? time
        overSoftLimitSince = since
        return time - since > 1000 * Int64(settings.subscriberSoftSeconds.read())
    }

    // MARK: Writing

    /// Sends as much as the socket accepts, up to ``flushBytesMax``. libuv sends the rest in a later turn, when the
    /// socket is writable.
    func flush() {
        guard !isClosed, !isWriting, !isAway else { return }
        var left = Self.flushBytesMax
        while true {
            if session.pendingOutput == 0 { takeLines(upTo: 1) }
            guard session.replyQueue.sendableCount > 0 else { break }
            let sent = left > 0 ? trySend(min(left, session.replyQueue.sendableCount)) : 0
            if sent < 0 { return close(nil) }
            if sent == 0 { return sendLater() }
            left -= sent
        }
        closeIfDone()
    }

    /// Sends with a system call, which costs less than libuv's queue of writes. That queue is empty at this point.
    /// - Returns: the number of bytes sent; 0 if the socket's buffer is full; negative if sending failed.
    private func trySend(_ most: Int) -> Int {
        let sent = session.replyMemory.pointee.withBytes { bytes -> Int in
            var sent = 0
            repeat {
                sent = send(descriptor, bytes.baseAddress, min(most, bytes.count), Self.sendFlags)
            } while sent < 0 && errno == EINTR
            return sent
        }
        if sent < 0 { return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -1 }
        didSend(sent)
        lastProgress = unmanagedLoop._withUnsafeGuaranteedRef { $0.time }
        return sent
    }

    // The process ignores SIGPIPE. If the system has the flag MSG_NOSIGNAL, the signal is not even raised.
    private static var sendFlags: Int32 { Int32(MSG_DONTWAIT) | noSignal }

    /// Removes bytes from the output that the socket or libuv has taken.
    private func didSend(_ count: Int) {
        session.replyQueue.didSend(count)
        if session.pendingOutput == 0 {
            pushedBytes = 0
            session.queries.didRead()
        }
        unmanagedLoop._withUnsafeGuaranteedRef { $0.commandCounter.bytesOut.add(count) }
    }

    private func sendLater() {
        let count = min(session.replyQueue.sendableCount, Self.writeBytes)
        // One block for the request and a copy of the bytes to send. It must not move until libuv calls back.
        let size = MemoryLayout<uv_write_t>.stride
        let block = UnsafeMutableRawPointer.allocate(
            byteCount: size + count, alignment: MemoryLayout<uv_write_t>.alignment)
        let request = block.initializeMemory(as: uv_write_t.self, to: uv_write_t())
        let copy = UnsafeMutableRawBufferPointer(start: block + size, count: count)
        session.replies.withBytes { copy.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[..<count])) }
        var buffer = uv_buf_init(copy.baseAddress?.assumingMemoryBound(to: CChar.self), UInt32(clamping: count))
        isWriting = true
        writingBytes = count
        didSend(count)
        let status = uv_write(request, stream, &buffer, 1) { request, status in
            guard let request else { return }
            let handle = request.pointee.handle
            request.deallocate()
            Connection.with(handle) { $0.didWriteLater(status) }
        }
        if status != 0 {
            request.deallocate()
            isWriting = false
            close(nil)
        }
    }

    private func didWriteLater(_ status: Int32) {
        isWriting = false
        writingBytes = 0
        guard !isClosed else { return }
        guard status == 0 else { return close(nil) }
        lastProgress = eventLoop.time
        flush()
        if progress == .full { advance() }
    }

    /// Closes a connection that has nothing more to send or receive.
    private func closeIfDone() {
        guard !isAway else { return }
        let isOver = progress == .closing || progress == .idle && (hasEnded || isFinishing)
        if isOver, !isWriting, session.pendingOutput == 0, !session.replyQueue.hasHeld { close(nil) }
    }

    // MARK: Time

    /// Checks the time limits of the connection. Called on every tick of the loop.
    /// - Parameters:
    ///   - time: the loop's time, in milliseconds.
    ///   - monotonic: the engine's monotonic time, in milliseconds.
    func tick(_ time: Int64, monotonic: Int64) {
        guard !isAway else { return }
        session.noteRecord()
        session.record.outputBytes.store(session.pendingOutput + writingBytes, ordering: .relaxed)
        // If the client has disconnected, close now: its queued work would only delay other clients.
        if progress == .working && session.mayDropWork || progress == .waiting, session.record.isGone {
            return close(nil)
        }
        session.expireSnapshot(monotonic: monotonic)
        quietTicks += 1
        if quietTicks == Self.ticksUntilReclaim, progress == .idle { session.reclaim() }
        let limits = eventLoop.server.limits
        // A client is stalled only if it does not read replies that can be sent. Replies that wait for a commit do not
        // count.
        let isStalled = isWriting || session.replyQueue.sendableCount > 0
        let idle = Int64(eventLoop.server.settings.idleSeconds.read()) * 1000
        if idle > 0, progress == .idle, session.isIdle(for: idle) {
            close("the client sent nothing for \(idle / 1000) s (CONFIG SET timeout)")
        } else if isOverSoftLimit(time) {
            close(
                "more than \(eventLoop.server.settings.subscriberBytesSoft.read()) bytes of messages were unread for "
                    + "\(eventLoop.server.settings.subscriberSoftSeconds.read()) s (--max-subscriber-output)")
        } else if isStalled, time - lastProgress > limits.outputStallMilliseconds {
            close(
                "\(session.pendingOutput) bytes of replies were unread for \(limits.outputStallMilliseconds) ms "
                    + "(--reply-timeout)")
        } else if !isStalled {
            lastProgress = time
        }
    }
}

/// Returns libuv's message for an error code.
func errorText(_ status: Int32) -> String { String(cString: uv_strerror(status)) }
