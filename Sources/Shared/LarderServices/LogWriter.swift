import LarderPlatform

/// Writes a log's lines to a pipe, a socket or a terminal. A separate thread writes, because writing may block. So a
/// slow reader does not block the threads that log.
///
/// Lines keep their order. Lines that do not fit into the queue are dropped. When the reader reads again, one line
/// reports how many were dropped.
///
/// Thread-safe. `@unchecked Sendable`: mutable state is guarded by `lock`.
final class LogWriter: @unchecked Sendable {
    /// The maximum number of bytes in the queue: 256 KiB.
    static let bytesMax = 256 << 10
    /// How long ``write(_:)`` waits for its line to be written, in milliseconds. It waits so that a crash of the
    /// process normally does not lose lines that were already logged.
    static let patience: Int64 = 20

    private let descriptor: Int32
    private let lostLine: @Sendable (Int) -> String
    private let lock = Lock()
    private let given = Condition()
    private let written = Condition()
    private var waiting: [[UInt8]] = []
    private var waitingBytes = 0
    /// The number of lines dropped since the thread last emptied the queue.
    private var lost = 0
    private var submittedCount = 0
    private var writtenCount = 0
    /// Whether a call of ``write(_:)`` timed out and the queue has not been empty since. Later calls then do not wait.
    private var isBehind = false
    private var isEnding = false

    /// - Parameter lostLine: returns the line that reports a number of lost lines.
    /// - Returns: nil if no thread can be started.
    init?(_ descriptor: Int32, lostLine: @escaping @Sendable (Int) -> String) {
        self.descriptor = descriptor
        self.lostLine = lostLine
        guard WorkThread.shortage(ofThreads: 1) == nil else { return nil }
        _ = WorkThread(name: "log") { [self] in run() }
    }

    /// Appends a line to the queue, and waits up to 20 ms until it is written. Drops the line if the queue is full.
    func write(_ line: [UInt8]) {
        lock.withLock {
            guard waiting.isEmpty || waitingBytes + line.count <= Self.bytesMax else {
                // Count the line that will report the dropped lines, because the thread will write that line too.
                if lost == 0 { submittedCount += 1 }
                lost += 1
                return
            }
            waiting.append(line)
            waitingBytes += line.count
            submittedCount += 1
            given.signal()
            guard !isBehind else { return }
            if !wait(for: submittedCount, milliseconds: Self.patience) { isBehind = true }
        }
    }

    /// Waits until all queued lines are written, for at most the given time.
    /// - Returns: whether all lines were written.
    func flush(milliseconds: Int64) -> Bool { lock.withLock { wait(for: submittedCount, milliseconds: milliseconds) } }

    /// Lets the thread terminate after it has written all queued lines. Does not wait for that.
    func end() {
        lock.withLock {
            isEnding = true
            given.signal()
        }
    }

    private func wait(for count: Int, milliseconds: Int64) -> Bool {
        let end = MonotonicClock.milliseconds() + milliseconds
        while writtenCount < count {
            let left = end - MonotonicClock.milliseconds()
            guard left > 0 else { return false }
            written.wait(lock, milliseconds: left)
        }
        return true
    }

    // MARK: The thread

    private func run() {
        // Block all signals in this thread: the program's other threads handle them.
        var signals = sigset_t()
        sigfillset(&signals)
        pthread_sigmask(SIG_BLOCK, &signals, nil)
        while let (lines, lost) = take() {
            for line in lines { finish(line) }
            if lost > 0 { finish(Array(lostLine(lost).utf8)) }
        }
    }

    private func finish(_ line: [UInt8]) {
        put(line)
        lock.withLock {
            writtenCount += 1
            if writtenCount == submittedCount { isBehind = false }
            written.broadcast()
        }
    }

    /// - Returns: the queued lines and the number of dropped lines; nil if the thread shall terminate.
    private func take() -> (lines: [[UInt8]], lost: Int)? {
        lock.withLock {
            while waiting.isEmpty {
                if isEnding { return nil }
                given.wait(lock)
            }
            defer { (waiting, waitingBytes, lost) = ([], 0, 0) }
            return (waiting, lost)
        }
    }

    /// Writes a line, blocking as long as necessary.
    private func put(_ line: [UInt8]) {
        var rest = line[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { systemWrite(descriptor, $0.baseAddress, $0.count) }
            if count > 0 {
                rest = rest.dropFirst(count)
            } else if count < 0, errno == EAGAIN {
                // Another process has made the shared descriptor non-blocking. Wait for space.
                var entry = pollfd(fd: descriptor, events: Int16(truncatingIfNeeded: POLLOUT), revents: 0)
                _ = poll(&entry, 1, -1)
            } else if count >= 0 || errno != EINTR {
                return
            }
        }
    }
}
