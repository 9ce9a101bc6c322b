import LarderPlatform

/// What started the process as a service, if something did: systemd, or whatever else speaks its protocols, sd_notify(3)
/// and sd_watchdog_enabled(3).
///
/// Messages go as datagrams to the socket that `NOTIFY_SOCKET` names. Nothing here ever waits: one that the manager does
/// not take is sent again with the next tick if it matters, and else dropped. Thread-safe. The proof for `@unchecked
/// Sendable`: the state is read and written with the lock held.
package final class ServiceManager: @unchecked Sendable {
    private let name: String
    private let descriptor: Int32
    /// How often the manager wants a sign of life, in milliseconds; nil if it wants none.
    package let watchdogMilliseconds: Int64?
    private let lock = Lock()
    /// What the manager has not taken yet, the oldest first.
    private var pending: [String] = []
    private var aliveAt = Int64.min / 2
    private var status = ""

    /// States follow each other slowly: more than this many wait for nobody.
    private static let pendingMax = 16

    /// Takes what the environment says, and removes it from there: it is meant for this process alone.
    /// - Returns: nil if there is no manager.
    package static func take() -> ServiceManager? {
        ServiceManager(
            name: Environment.take("NOTIFY_SOCKET"), interval: Environment.take("WATCHDOG_USEC"),
            process: Environment.take("WATCHDOG_PID"))
    }

    init?(name: String?, interval: String?, process: String?) {
        // Others, such as the vsock of a virtual machine, are not for a daemon with Unix sockets only.
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

    /// Comes before ``ready(_:)`` again.
    package func reloading() {
        send(
            "RELOADING=1\nMONOTONIC_USEC=\(MonotonicClock.nanoseconds() / 1000)\nSTATUS=reading the configuration",
            matters: true)
    }

    /// Why the daemon ends at once.
    package func fail(_ reason: String) { tell(reason.split(separator: "\n").first.map(String.init) ?? reason) }

    /// Words for people, sent if they are new.
    package func tell(_ new: String) {
        let isNew = lock.withLock {
            defer { status = new }
            return status != new
        }
        if isNew { send("STATUS=\(new.replacing("\n", with: " "))", matters: false) }
    }

    // MARK: Signs of life

    /// Sends what is still pending, and the sign of life if it is due.
    /// - Parameters:
    ///   - now: the monotonic time in milliseconds.
    ///   - isAlive: whether everything that should work does.
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

    /// Tells while `work` lasts that it does, because opening and closing a larder may take longer than the manager waits
    /// for other services. Blocks as long as the work.
    package func during<Result, Failure: Error>(
        _ status: String, _ work: () throws(Failure) -> Result
    ) throws(Failure) -> Result {
        tell(status)
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

    /// By how much the manager is asked to wait longer, in milliseconds.
    private static let extensionMilliseconds: Int64 = 30_000
    /// After an hour the work counts as stuck.
    private static let workMillisecondsMax: Int64 = 3_600_000

    /// Thread-safe. The proof for `@unchecked Sendable`: guarded by the lock.
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

        /// - Returns: whether the end has come.
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

    /// Called with the lock held. Whatever else is wrong than a full queue will stay so.
    private func sendInOrder() {
        while let text = pending.first {
            let number = UnixSocket.sendDatagram(descriptor, Array(text.utf8), to: name)
            if number == EAGAIN || number == EWOULDBLOCK || number == ENOBUFS { return }
            pending.removeFirst()
        }
    }
}
