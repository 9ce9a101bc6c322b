import LarderClient
import LarderPlatform

/// Polls the daemon for `top` on its own thread, so that a daemon that does not reply cannot block the terminal's keys
/// and signals.
///
/// `@unchecked Sendable`: the variables are guarded by `lock`.
final class DaemonQuestion: @unchecked Sendable {
    struct Answer: Sendable {
        let socketPath: String
        let info: InfoFigures
        let databases: [DatabaseInfo]
        /// When the reply arrived, in milliseconds of the monotonic clock.
        let time: Int64
    }

    private let lock = Lock()
    private let connect: @Sendable () throws -> BlockingLarderClient
    private var client: BlockingLarderClient?
    private var outcome: Result<Answer, any Error>?

    /// - Parameters:
    ///   - client: nil to connect at the first poll.
    ///   - connect: opens a new connection after the previous one has failed.
    init(_ client: BlockingLarderClient?, connect: @escaping @Sendable () throws -> BlockingLarderClient) {
        self.client = client
        self.connect = connect
    }

    /// Polls in the background. Poll again only after ``take()`` has returned the result.
    /// - Parameter onEnd: called on another thread when there is a result.
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

    /// Takes the result of the poll; nil if the poll has not completed.
    func take() -> Result<Answer, any Error>? {
        lock.withLock {
            defer { outcome = nil }
            return outcome
        }
    }

    /// Polls, and waits for the reply.
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
