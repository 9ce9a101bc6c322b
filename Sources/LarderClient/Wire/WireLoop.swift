// The one thread that reads from all connections of the process's asynchronous clients.

import LarderPlatform
import Synchronization

/// The thread that waits for events of the links, and lets the links handle them.
///
/// The process has only one such thread. It starts with the first client, runs until the process exits, and blocks only
/// while it waits for events. Thread-safe. `@unchecked Sendable`: `links` is guarded by `lock`, and `readEnd` is used
/// before the thread starts, then only by the thread; the rest is constant or atomic.
final class WireLoop: @unchecked Sendable {
    static let shared = WireLoop()

    private let lock = Lock()
    private var links: [Link] = []
    /// The read end of the pipe that wakes the thread; -1 while the process has no free descriptors for a pipe. Without
    /// a pipe, the thread wakes up at short intervals.
    private var readEnd: CInt = -1
    private let writeEnd = Atomic<CInt>(-1)
    private let isWoken = Atomic(false)

    private init() {
        makePipe()
        _ = WorkThread(name: "larder-client") { [self] in run() }
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

    /// The longest sleep without a pipe, in milliseconds.
    private static let pollMilliseconds: CInt = 10

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

    private func run() {
        var entries: [pollfd] = []
        while true {
            makePipe()
            let links = lock.withLock { self.links }
            let now = MonotonicClock.milliseconds()
            var due = Int64.max
            var waiting: [(link: Link, socket: StreamSocket)] = []
            entries.removeAll(keepingCapacity: true)
            entries.append(pollfd(fd: readEnd, events: Int16(truncatingIfNeeded: POLLIN), revents: 0))
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
            wait(&entries, now: now, due: due)
            for (entry, place) in zip(entries.dropFirst(), waiting) where entry.revents != 0 {
                place.link.act(on: place.socket, mayRead: entry.revents & ~Int16(truncatingIfNeeded: POLLOUT) != 0)
            }
        }
    }

    private func wait(_ entries: inout [pollfd], now: Int64, due: Int64) {
        let limit: CInt = due == .max ? -1 : CInt(clamping: max(0, due - now))
        guard readEnd >= 0 else {
            _ = poll(
                &entries, nfds_t(entries.count), limit < 0 ? Self.pollMilliseconds : min(limit, Self.pollMilliseconds)
            )
            return isWoken.store(false, ordering: .releasing)
        }
        _ = poll(&entries, nfds_t(entries.count), limit)
        guard entries[0].revents != 0 else { return }
        // Empty the pipe before clearing the flag, so that a later call of wake() writes to the pipe again.
        withUnsafeTemporaryAllocation(byteCount: 64, alignment: 1) { space in
            while read(readEnd, space.baseAddress, space.count) > 0 {}
        }
        isWoken.store(false, ordering: .releasing)
    }
}
