// A thread that serves connections, timers, and closures of other threads.

import LarderPlatform
import Synchronization

/// The events for which a loop waits.
struct LoopInterest {
    var socket: StreamSocket?
    var wantsToSend = false
    /// When the loop must call ``Link/prepare(now:)`` again at the latest, in monotonic milliseconds.
    var due = Int64.max
    /// Whether the loop forgets the link.
    var isFinished = false
}

/// A thread that waits for events of its links' sockets, and lets the links handle them. It blocks only while it waits
/// for events.
///
/// Thread-safe, except for the methods for the loop's thread. `@unchecked Sendable`: `links`, `mail` and `isOver` are
/// guarded by `lock`. `readEnd` is used before the thread starts, then only by the thread, like `timers` and the
/// closures in hand. The rest is constant or atomic.
package final class SocketLoop: @unchecked Sendable {
    private let lock = Lock()
    private var links: [Link] = []
    private var mail = Deque<@Sendable () -> Void>()
    private var isOver = false
    /// The read end of the pipe that wakes the thread; -1 while the process has no free descriptors for a pipe. Without
    /// a pipe, the thread wakes up at short intervals.
    private var readEnd: CInt = -1
    private let writeEnd = Atomic<CInt>(-1)
    private let isWoken = Atomic(false)

    // MARK: On the loop's thread

    /// The closures taken from `mail` that did not run yet.
    private var taken = Deque<@Sendable () -> Void>()
    private var timers: [LoopTimer] = []
    private var mustRepeatTurn = false

    /// The longest sleep without a pipe, in milliseconds.
    private static let pollMilliseconds: CInt = 10
    private static let mailPerTurn = 1_000

    /// Starts the thread.
    package init(name: String) {
        makePipe()
        WorkThread(name: name) { [self] in run() }.detach()
    }

    deinit {
        for end in [readEnd, writeEnd.load(ordering: .relaxed)] where end >= 0 { systemClose(end) }
    }

    /// Creates the pipe if there is none. Called only by the thread, and before the thread is started.
    private func makePipe() {
        guard readEnd < 0 else { return }
        var ends: [CInt] = [-1, -1]
        guard pipe(&ends) == 0 else { return }
        for end in ends {
            _ = fcntl(end, F_SETFD, FD_CLOEXEC)
            _ = fcntl(end, F_SETFL, O_NONBLOCK)
        }
        readEnd = ends[0]
        writeEnd.store(ends[1], ordering: .releasing)
    }

    /// Serves a link until it is closed.
    func add(_ link: Link) {
        lock.withLock { links.append(link) }
        wake()
    }

    /// Makes the thread check its links.
    func wake() {
        guard !isWoken.exchange(true, ordering: .acquiringAndReleasing) else { return }
        var byte: UInt8 = 1
        // Ignore errors: a full pipe wakes the thread as well.
        let end = writeEnd.load(ordering: .acquiring)
        if end >= 0 { _ = write(end, &byte, 1) }
    }

    /// Runs `work` on the loop's thread, in the order of the calls.
    /// - Returns: false after ``end()``; `work` is then not run.
    @discardableResult
    package func send(_ work: @escaping @Sendable () -> Void) -> Bool {
        let (isFirst, isOver) = lock.withLock {
            if !self.isOver { mail.append(work) }
            return (mail.count == 1, self.isOver)
        }
        if isFirst { wake() }
        return !isOver
    }

    /// Lets the thread terminate at the end of this turn. Call it on the loop's thread.
    package func end() { lock.withLock { isOver = true } }

    /// Makes the loop check its links before it waits. Call it on the loop's thread.
    func repeatTurn() { mustRepeatTurn = true }

    /// Looks up the addresses of a host. Call it on the loop's thread, on which `answer` is called later.
    func resolve(
        host: String, port: UInt16,
        _ answer: @escaping @Sendable (Result<[SocketAddress], TCPSocket.Failure>) -> Void
    ) {
        // Lookups block, so each has a thread, which ends with it.
        WorkThread(name: "larder-lookup") { [self] in
            let result = TCPSocket.resolve(host: host, port: port)
            send { answer(result) }
        }.detach()
    }

    fileprivate func arm(_ timer: LoopTimer) { timers.append(timer) }
    fileprivate func disarm(_ timer: LoopTimer) { timers.removeAll { $0 === timer } }

    // MARK: Turns

    private func run() {
        var entries: [pollfd] = []
        while true {
            makePipe()
            runClosures()
            let (links, isOver) = lock.withLock { (self.links, self.isOver) }
            let now = MonotonicClock.milliseconds()
            var due = Int64.max
            var waiting: [(link: Link, socket: StreamSocket)] = []
            entries.removeAll(keepingCapacity: true)
            entries.append(pollfd(fd: readEnd, events: Int16(truncatingIfNeeded: POLLIN), revents: 0))
            mustRepeatTurn = false
            for link in links {
                let interest = link.prepare(now: now)
                if interest.isFinished {
                    lock.withLock { self.links.removeAll { $0 === link } }
                    continue
                }
                due = min(due, interest.due)
                guard let socket = interest.socket else { continue }
                let events = interest.wantsToSend ? POLLIN | POLLOUT : POLLIN
                entries.append(pollfd(fd: socket.descriptor, events: Int16(truncatingIfNeeded: events), revents: 0))
                waiting.append((link, socket))
            }
            if isOver { break }
            for timer in timers { due = min(due, timer.due) }
            if mustRepeatTurn || !taken.isEmpty { due = 0 }
            wait(&entries, due: due)
            for (entry, place) in zip(entries.dropFirst(), waiting) where entry.revents != 0 {
                place.link.act(on: place.socket, mayRead: entry.revents & ~Int16(truncatingIfNeeded: POLLOUT) != 0)
            }
        }
        timers = []
        lock.withLock { self.links = [] }
    }

    /// Runs due timers and the closures of other threads.
    private func runClosures() {
        let now = MonotonicClock.milliseconds()
        for timer in timers where timer.due <= now { timer.fire() }
        if taken.isEmpty { lock.withLock { swap(&taken, &mail) } }
        // If closures are left, handle sockets first.
        for _ in 0..<Self.mailPerTurn {
            guard let work = taken.popFirst() else { break }
            work()
        }
    }

    private func wait(_ entries: inout [pollfd], due: Int64) {
        let left = due == .max ? -1 : max(0, due - MonotonicClock.milliseconds())
        guard readEnd >= 0 else {
            let limit = left < 0 ? Self.pollMilliseconds : CInt(clamping: min(left, Int64(Self.pollMilliseconds)))
            _ = poll(&entries, nfds_t(entries.count), limit)
            return isWoken.store(false, ordering: .releasing)
        }
        _ = poll(&entries, nfds_t(entries.count), CInt(clamping: left))
        guard entries[0].revents != 0 else { return }
        // Empty the pipe before clearing the flag, so that a later call of wake() writes to the pipe again.
        withUnsafeTemporaryAllocation(byteCount: 64, alignment: 1) { space in
            while read(readEnd, space.baseAddress, space.count) > 0 {}
        }
        isWoken.store(false, ordering: .releasing)
    }
}

/// Calls a closure after a delay. Used on the loop's thread only. The loop retains it until it has fired or is stopped.
package final class LoopTimer {
    private let loop: SocketLoop
    private let action: () -> Void
    /// When the timer fires, in monotonic milliseconds; `Int64.max` for never.
    fileprivate var due = Int64.max

    package init(_ loop: SocketLoop, _ action: @escaping () -> Void) { (self.loop, self.action) = (loop, action) }

    /// Starts or restarts the timer: it calls the closure in `milliseconds` from now.
    package func start(milliseconds: Int) {
        if due == .max { loop.arm(self) }
        due = MonotonicClock.milliseconds() + Int64(max(0, milliseconds))
    }

    package func stop() {
        guard due != .max else { return }
        due = .max
        loop.disarm(self)
    }

    fileprivate func fire() {
        guard due != .max else { return }
        stop()
        action()
    }
}
