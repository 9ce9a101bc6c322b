import LarderPlatform

/// Writes the lines of a log where a write may block: to a pipe, a socket or a terminal. A separate thread writes, so
/// that a slow reader does not block the threads that log.
///
/// Lines keep their order. Lines that do not fit into the queue are dropped and counted, and a line reports the number
/// as soon as the reader continues.
///
/// Thread-safe. `@unchecked Sendable`: mutable state is guarded by `lock`.
final class LogWriter: @unchecked Sendable {
    /// The most bytes in the queue: 256 KiB.
    static let bytesMax = 256 << 10
    /// How long a call waits for its line to be written, in milliseconds. Normally the line is written when the call
    /// returns, and survives a crash of the process.
    static let patience: Int64 = 20

    private let descriptor: Int32
    private let lostLine: @Sendable (Int) -> String
    private let lock = Lock()
    private let given = Condition()
    private let written = Condition()
    private var waiting: [[UInt8]] = []
    private var waitingBytes = 0
    /// The lines dropped since lines were last taken.
    private var lost = 0
    private var givenCount = 0
    private var writtenCount = 0
    /// Whether a call has timed out, and not everything has been written since.
    private var isBehind = false
    private var isEnding = false

    /// - Parameter lostLine: returns the line that reports a number of lost lines.
    /// - Returns: nil if the thread cannot be started.
    init?(_ descriptor: Int32, lostLine: @escaping @Sendable (Int) -> String) {
        self.descriptor = descriptor
        self.lostLine = lostLine
        guard WorkThread.shortage(ofThreads: 1) == nil else { return nil }
        _ = WorkThread(name: "log") { [self] in run() }
    }

    /// Submits a line, and waits a moment until it is written.
    func write(_ line: [UInt8]) {
        lock.withLock {
            guard waiting.isEmpty || waitingBytes + line.count <= Self.bytesMax else {
                // The line that reports the loss counts as one of the submitted lines.
                if lost == 0 { givenCount += 1 }
                lost += 1
                return
            }
            waiting.append(line)
            waitingBytes += line.count
            givenCount += 1
            given.signal()
            guard !isBehind else { return }
            if !wait(for: givenCount, milliseconds: Self.patience) { isBehind = true }
        }
    }

    /// Waits until all submitted lines are written, at most for the given time.
    /// - Returns: whether all were written.
    func flush(milliseconds: Int64) -> Bool { lock.withLock { wait(for: givenCount, milliseconds: milliseconds) } }

    /// Ends the thread once everything is written.
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
        // Signals are handled by the program's other threads.
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
            if writtenCount == givenCount { isBehind = false }
            written.broadcast()
        }
    }

    /// - Returns: nil at the end.
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
                // Wait for space: another process that shares the file has made it non-blocking.
                var entry = pollfd(fd: descriptor, events: Int16(truncatingIfNeeded: POLLOUT), revents: 0)
                _ = poll(&entry, 1, -1)
            } else if count >= 0 || errno != EINTR {
                return
            }
        }
    }
}
