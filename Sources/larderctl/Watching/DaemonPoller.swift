import LarderClient
import LarderPlatform

/// Requests figures from the daemon for `top` on a separate thread, so that keys work even without a reply.
///
/// `@unchecked Sendable`: mutable state is guarded by `lock`.
final class DaemonPoller: @unchecked Sendable {
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
    ///   - client: the connection to use; nil to connect at the first request.
    ///   - connect: opens a new connection after the previous one has failed.
    init(_ client: BlockingLarderClient?, connect: @escaping @Sendable () throws -> BlockingLarderClient) {
        self.client = client
        self.connect = connect
    }

    /// Starts a request in the background. Call it again only after ``take()`` has returned the result.
    /// - Parameter onEnd: called on the other thread when there is a result.
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

    /// Returns and removes the result of the request; nil if the request has not completed.
    func take() -> Result<Answer, any Error>? {
        lock.withLock {
            defer { outcome = nil }
            return outcome
        }
    }

    /// Sends the request, and waits for the reply. Connects first if there is no connection.
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
