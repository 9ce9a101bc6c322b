import LarderPlatform

/// The service manager that started the process: systemd, or another that supports sd_notify(3) and
/// sd_watchdog_enabled(3).
///
/// Messages are sent as datagrams to the socket that `NOTIFY_SOCKET` names, without blocking. If the manager does not
/// accept one, it is sent again with the next tick if it matters, and dropped otherwise.
///
/// Thread-safe. `@unchecked Sendable`: mutable state is guarded by `lock`.
package final class ServiceManager: @unchecked Sendable {
    private let name: String
    private let descriptor: Int32
    /// The interval of watchdog messages, in milliseconds; nil if there is no watchdog.
    package let watchdogMilliseconds: Int64?
    private let lock = Lock()
    /// The messages that the manager has not accepted yet, the oldest first.
    private var pending: [String] = []
    private var aliveAt = Int64.min / 2
    private var status = ""

    /// State changes are rare, so more pending messages than this are pointless.
    private static let pendingMax = 16

    /// Reads the environment, and removes the variables, which are meant for this process alone.
    /// - Returns: nil if there is no manager.
    package static func take() -> ServiceManager? {
        ServiceManager(
            name: Environment.take("NOTIFY_SOCKET"), interval: Environment.take("WATCHDOG_USEC"),
            process: Environment.take("WATCHDOG_PID"))
    }

    init?(name: String?, interval: String?, process: String?) {
        // Other addresses, such as the vsock of a virtual machine, are not supported.
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
        lock.withLock { self.status = status }
        send("READY=1\nSTATUS=\(status)", matters: true)
    }

    package func stopping(_ reason: String) { send("STOPPING=1\nSTATUS=stopping: \(reason)", matters: true) }

    /// Call it before the next ``ready(_:)``.
    package func reloading() {
        send(
            "RELOADING=1\nMONOTONIC_USEC=\(MonotonicClock.nanoseconds() / 1000)\nSTATUS=reading the configuration",
            matters: true)
    }

    /// Reports why the daemon terminates immediately.
    package func fail(_ reason: String) { notify(reason.split(separator: "\n").first.map(String.init) ?? reason) }

    /// Reports a status text, if it has changed.
    package func notify(_ new: String) {
        let isNew = lock.withLock {
            defer { status = new }
            return status != new
        }
        if isNew { send("STATUS=\(new.replacing("\n", with: " "))", matters: false) }
    }

    // MARK: Watchdog

    /// Sends pending messages, and the watchdog message if it is due.
    /// - Parameters:
    ///   - now: the monotonic time in milliseconds.
    ///   - isAlive: whether everything works.
    package func tick(now: Int64, isAlive: Bool) {
        sendPending()
        guard let watchdogMilliseconds, isAlive else { return }
        let isDue = lock.withLock {
            guard now - aliveAt >= watchdogMilliseconds / 2 else { return false }
            aliveAt = now
            return true
        }
        if isDue { send("WATCHDOG=1", matters: false) }
    }

    /// Reports progress while `work` runs, because opening and closing a larder may take longer than the manager waits
    /// for other services. Blocks as long as the work.
    package func during<Result, Failure: Error>(
        _ status: String, _ work: () throws(Failure) -> Result
    ) throws(Failure) -> Result {
        notify(status)
        let ending = Ending()
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
            ending.end()
            thread.join()
        }
        return try work()
    }

    /// The extension of the timeout that is requested from the manager, in milliseconds.
    private static let extensionMilliseconds: Int64 = 30_000
    /// After an hour the work is considered stuck.
    private static let workMillisecondsMax: Int64 = 3_600_000

    /// Thread-safe. `@unchecked Sendable`: guarded by the lock.
    private final class Ending: @unchecked Sendable {
        private let lock = Lock()
        private let changed = Condition()
        private var isOver = false

        func end() {
            lock.withLock {
                isOver = true
                changed.broadcast()
            }
        }

        /// - Returns: whether the work has ended.
        func wait(milliseconds: Int64) -> Bool {
            lock.withLock {
                if !isOver { _ = changed.wait(lock, milliseconds: milliseconds) }
                return isOver
            }
        }
    }

    // MARK: Datagrams

    private func send(_ text: String, matters: Bool) {
        lock.withLock {
            if matters {
                pending = pending.suffix(Self.pendingMax - 1) + [text]
                sendInOrder()
            } else if pending.isEmpty {
                _ = UnixSocket.sendDatagram(descriptor, Array(text.utf8), to: name)
            }
        }
    }

    private func sendPending() { lock.withLock { sendInOrder() } }

    /// Called with `lock` held. Errors other than a full queue are permanent.
    private func sendInOrder() {
        while let text = pending.first {
            let number = UnixSocket.sendDatagram(descriptor, Array(text.utf8), to: name)
            if number == EAGAIN || number == EWOULDBLOCK || number == ENOBUFS { return }
            pending.removeFirst()
        }
    }
}
