import LarderClient
import LarderPlatform

/// Asks the daemon for what `top` shows, on a thread of its own: a daemon that does not answer must not keep the keys and
/// the signals of the terminal waiting.
///
/// Thread-safe. The proof for `@unchecked Sendable`: what changes is read and written with the lock held.
final class DaemonQuestion: @unchecked Sendable {
    struct Answer: Sendable {
        let socketPath: String
        let info: InfoFigures
        let databases: [DatabaseInfo]
        /// When it came, on the monotonic clock, in milliseconds.
        let time: Int64
    }

    private let lock = Lock()
    private let connect: @Sendable () throws -> BlockingLarderClient
    private var client: BlockingLarderClient?
    private var outcome: Result<Answer, any Error>?

    /// - Parameters:
    ///   - client: nil if the first question has to connect.
    ///   - connect: makes another connection when one has failed.
    init(_ client: BlockingLarderClient?, connect: @escaping @Sendable () throws -> BlockingLarderClient) {
        self.client = client
        self.connect = connect
    }

    /// Asks in the background; the next question only after ``take()`` has returned the outcome of this one.
    /// - Parameter onEnd: called on another thread when there is an outcome.
    func ask(onEnd: @escaping @Sendable () -> Void) {
        _ = WorkThread(name: "larderctl-ask") { [self] in
            let outcome = Result { try look() }
            lock.withLock {
                if case .failure = outcome { client = nil }
                self.outcome = outcome
            }
            onEnd()
        }
    }

    /// What came of the question; nil before that.
    func take() -> Result<Answer, any Error>? {
        lock.withLock {
            defer { outcome = nil }
            return outcome
        }
    }

    /// Asks, and waits for the answer.
    func look() throws -> Answer {
        let known = lock.withLock { client }
        let connected = try known ?? connect()
        lock.withLock { client = connected }
        let info = InfoFigures(try connected.serverInfo(section: "everything"))
        return Answer(
            socketPath: connected.socketPath, info: info, databases: try connected.databases(),
            time: MonotonicClock.milliseconds())
    }
}
