import LarderPlatform

/// Reports this process's state to the service manager that started it: systemd, or another manager that supports
/// sd_notify(3) and sd_watchdog_enabled(3).
///
/// Messages are datagrams to the socket that `NOTIFY_SOCKET` names, sent without blocking. If the manager's queue is
/// full, state changes are sent again by ``tick(now:isAlive:)``; status texts and watchdog messages are dropped.
///
/// Thread-safe.
package final class ServiceManager: Sendable {
    private let name: String
    private let descriptor: Int32
    /// The watchdog timeout in milliseconds: if the manager gets no message for that long, it considers the process
    /// stuck. Nil without a watchdog.
    package let watchdogMilliseconds: Int64?
    private let state = Locked(State())

    private struct State {
        /// The state changes that the manager has not accepted yet, the oldest first.
        var pending: [String] = []
        var aliveAt = Int64.min / 2
        var status = ""
    }

    /// The maximum number of pending messages. If there are more, the oldest is dropped.
    private static let pendingMax = 16

    /// Creates the object from `NOTIFY_SOCKET`, `WATCHDOG_USEC` and `WATCHDOG_PID`, and removes these variables, so
    /// that child processes do not inherit them.
    /// - Returns: nil if there is no service manager.
    package static func take() -> ServiceManager? {
        ServiceManager(
            name: Environment.take("NOTIFY_SOCKET"), interval: Environment.take("WATCHDOG_USEC"),
            process: Environment.take("WATCHDOG_PID"))
    }

    init?(name: String?, interval: String?, process: String?) {
        // Only Unix-domain sockets are supported, by path or by abstract name (`@`), and no other addresses.
        guard let name, name.hasPrefix("/") || name.hasPrefix("@") else { return nil }
        self.name = name
        descriptor = UnixSocket.makeDatagram()
        guard descriptor >= 0 else { return nil }
        let isForUs = process.map { Int32($0) == getpid() } ?? true
        watchdogMilliseconds = isForUs ? interval.flatMap(Int64.init).flatMap { $0 > 0 ? max(1, $0 / 1000) : nil } : nil
    }

    deinit { close(descriptor) }

    // MARK: States

    package func ready(_ status: String) {
        state.withLock { $0.status = status }
        send("READY=1\nSTATUS=\(status)", matters: true)
    }

    package func stopping(_ reason: String) { send("STOPPING=1\nSTATUS=stopping: \(reason)", matters: true) }

    /// Reports that the daemon reads its configuration again. Call ``ready(_:)`` afterwards.
    package func reloading() {
        send(
            "RELOADING=1\nMONOTONIC_USEC=\(MonotonicClock.nanoseconds() / 1000)\nSTATUS=reading the configuration",
            matters: true)
    }

    /// Reports as status text why the daemon is about to terminate: the first line of the reason.
    package func fail(_ reason: String) { notify(reason.split(separator: "\n").first.map(String.init) ?? reason) }

    /// Sends a status text if it differs from the previous one.
    package func notify(_ new: String) {
        let isNew = state.withLock { state in
            defer { state.status = new }
            return state.status != new
        }
        if isNew { send("STATUS=\(new.replacing("\n", with: " "))", matters: false) }
    }

    // MARK: Watchdog

    /// Sends pending messages, and the watchdog message if half of the watchdog timeout has passed. Call it regularly.
    /// - Parameters:
    ///   - now: the monotonic time in milliseconds.
    ///   - isAlive: whether the daemon works. If not, no watchdog message is sent, so the manager assumes a hang.
    package func tick(now: Int64, isAlive: Bool) {
        let isDue = state.withLock {
            sendInOrder(&$0.pending)
            guard let watchdogMilliseconds, isAlive, now - $0.aliveAt >= watchdogMilliseconds / 2 else { return false }
            $0.aliveAt = now
            return true
        }
        if isDue { send("WATCHDOG=1", matters: false) }
    }

    /// Runs `work`, such as opening or closing a larder, which may take longer than the manager's usual timeout.
    /// Meanwhile another thread asks the manager to extend the timeout. Blocks until `work` returns.
    package func during<Result, Failure: Error>(
        _ status: String, _ work: () throws(Failure) -> Result
    ) throws(Failure) -> Result {
        notify(status)
        let ending = Latch()
        let thread = WorkThread(name: "larder-service") { [self] in
            let pause = min(
                watchdogMilliseconds.map { max(1, $0 / 3) } ?? Self.extensionMilliseconds / 3,
                Self.extensionMilliseconds / 3)
            for _ in 0..<(Self.workMillisecondsMax / pause) {
                if ending.wait(milliseconds: pause) { return }
                send("EXTEND_TIMEOUT_USEC=\(Self.extensionMilliseconds * 1000)", matters: false)
                if watchdogMilliseconds != nil { send("WATCHDOG=1", matters: false) }
            }
        }
        defer {
            ending.set()
            thread.join()
        }
        return try work()
    }

    /// The extension of the timeout that each message requests, in milliseconds.
    private static let extensionMilliseconds: Int64 = 30_000
    /// After this time (an hour) the work is considered stuck, and no more extensions are requested.
    private static let workMillisecondsMax: Int64 = 3_600_000

    // MARK: Datagrams

    private func send(_ text: String, matters: Bool) {
        state.withLock {
            if matters {
                $0.pending = $0.pending.suffix(Self.pendingMax - 1) + [text]
                sendInOrder(&$0.pending)
            } else if $0.pending.isEmpty {
                _ = UnixSocket.sendDatagram(descriptor, Array(text.utf8), to: name)
            }
        }
    }

    /// Sends pending messages until the manager's queue is full. Drops a message after any other error, because such
    /// errors are permanent.
    private func sendInOrder(_ pending: inout [String]) {
        while let text = pending.first {
            let number = UnixSocket.sendDatagram(descriptor, Array(text.utf8), to: name)
            if number == EAGAIN || number == EWOULDBLOCK || number == ENOBUFS { return }
            pending.removeFirst()
        }
    }
}

/// Environment variables that child processes must not inherit.
package enum Environment {
    /// Returns the value of a variable and removes it from the environment; nil if it is not set.
    package static func take(_ name: String) -> String? {
        guard let text = getenv(name).map({ String(cString: $0) }) else { return nil }
        unsetenv(name)
        return text
    }
}
