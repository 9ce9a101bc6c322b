import LarderPlatform

/// Writes a log's lines where a write may wait for a reader: into a pipe, a socket, a terminal. A thread of its own does
/// that, so that whoever logs never waits long for somebody who does not read.
///
/// Lines keep their order. What does not fit the queue is lost and counted, and a line says so as soon as somebody reads.
///
/// Thread-safe. The proof for `@unchecked Sendable`: what changes is read and written with the lock held.
final class LogWriter: @unchecked Sendable {
    /// The bytes that wait at most: 256 KiB.
    static let bytesMax = 256 << 10
    /// How long a line is waited for, in milliseconds: in ordinary use it is written when the call returns, and so is there
    /// whatever happens to the process next.
    static let patience: Int64 = 20

    private let descriptor: Int32
    private let lostLine: @Sendable (Int) -> String
    private let lock = Lock()
    private let given = Condition()
    private let written = Condition()
    private var waiting: [[UInt8]] = []
    private var waitingBytes = 0
    /// Since the last lines were taken.
    private var lost = 0
    private var givenCount = 0
    private var writtenCount = 0
    /// Whether somebody has waited in vain, and not all is written since.
    private var isBehind = false
    private var isEnding = false

    /// - Parameter lostLine: the line for a number of lost lines.
    /// - Returns: nil if there can be no thread.
    init?(_ descriptor: Int32, lostLine: @escaping @Sendable (Int) -> String) {
        self.descriptor = descriptor
        self.lostLine = lostLine
        guard WorkThread.shortage(ofThreads: 1) == nil else { return nil }
        _ = WorkThread(name: "log") { [self] in run() }
    }

    /// Hands a line over, and waits a moment until it is written.
    func write(_ line: [UInt8]) {
        lock.withLock {
            guard waiting.isEmpty || waitingBytes + line.count <= Self.bytesMax else {
                // The line that tells counts as one of those that are handed over.
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

    /// Waits until all that was handed over is written, at most for a time.
    /// - Returns: whether it is.
    func flush(milliseconds: Int64) -> Bool { lock.withLock { wait(for: givenCount, milliseconds: milliseconds) } }

    /// Ends the thread as soon as all is written.
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
        // The program's threads take the signals.
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

    /// Writes a line, however long that takes.
    private func put(_ line: [UInt8]) {
        var rest = line[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { systemWrite(descriptor, $0.baseAddress, $0.count) }
            if count > 0 {
                rest = rest.dropFirst(count)
            } else if count < 0, errno == EAGAIN {
                // Another process has made the file that is shared with it non-blocking.
                var entry = pollfd(fd: descriptor, events: Int16(truncatingIfNeeded: POLLOUT), revents: 0)
                _ = poll(&entry, 1, -1)
            } else if count >= 0 || errno != EINTR {
                return
            }
        }
    }
}
