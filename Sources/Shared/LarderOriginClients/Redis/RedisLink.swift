import LarderPlatform
import LarderRESP
import LarderWire

/// Receives the events of a ``RedisLink``. Called on the loop's thread.
protocol RedisLinkUser: AnyObject {
    func linkIsUp(_ link: RedisLink)
    func link(_ link: RedisLink, invalidated keys: [[UInt8]]?)
    /// The connection was lost or could not be made. The link tries again by itself.
    func linkIsDown(_ link: RedisLink, _ error: OriginError)
}

/// A connection to a server. After a loss, the connection is opened again, with an increasing back-off.
///
/// Used on the loop's thread only. Close it before you release it.
final class RedisLink: RedisConnectionUser {
    private enum State {
        case connecting
        case up
        /// The back-off: tasks fail immediately with this error until the next attempt to connect.
        case resting(OriginError)
        case closed
    }

    private let loop: SocketLoop
    private let endpoint: OriginEndpoint
    private let setup: RedisSetup
    private let limits: OriginLimits
    private let tls: TLSContext?
    private weak var user: (any RedisLinkUser)?
    private var state = State.connecting
    private var connection: RedisConnection?
    private var waiting = Deque<RedisTask>()
    private var timer: LoopTimer?
    private var failures = 0
    private var refusals = 0

    /// The shortest and the longest back-off, in milliseconds, after a failed connection.
    private static let firstRest: Int64 = 50
    private static let longestRest: Int64 = 1_000
    /// The shortest and the longest back-off after the server has rejected the greeting. They are longer, because some
    /// servers block clients that retry too often.
    private static let firstRefusedRest: Int64 = 1_000
    private static let longestRefusedRest: Int64 = 5_000

    init(
        _ loop: SocketLoop, _ endpoint: OriginEndpoint, _ setup: RedisSetup, _ limits: OriginLimits, tls: TLSContext?,
        user: any RedisLinkUser
    ) {
        self.tls = tls
        self.loop = loop
        self.endpoint = endpoint
        self.setup = setup
        self.limits = limits
        self.user = user
        timer = LoopTimer(loop) { [weak self] in self?.timeIsOver() }
    }

    var isUp: Bool { if case .up = state { true } else { false } }

    /// Why nothing can be sent now; nil if tasks can be sent or wait for the connection.
    var error: OriginError? {
        switch state {
        case .connecting, .up: nil
        case .resting(let error): error
        case .closed: .closed
        }
    }

    var bytesReceived: Int { connection?.bytesReceived ?? 0 }
    var unsentBytes: Int { connection?.unsentBytes ?? 0 }

    // MARK: Connecting

    /// Opens the connection. Call it once.
    func open() {
        state = .connecting
        let session = tls?.session(to: endpoint)
        // Without a TLS session, fail instead of making an unencrypted connection.
        guard tls == nil || session != nil else { return rest(.noTLS(endpoint)) }
        let connection = RedisConnection(
            loop, endpoint, setup.withPassword, valueBytes: limits.valueBytes, tls: session, user: self)
        self.connection = connection
        timer?.start(milliseconds: limits.connect)
        connection.open()
    }

    private func timeIsOver() {
        switch state {
        case .connecting:
            end(
                .unreachable(
                    "\(endpoint): no answer to the greeting within \(limits.connect) ms"
                        + (tls == nil ? "" : "; if the server does not use TLS, use redis:// instead of rediss://")))
        case .resting: open()
        case .up, .closed: break
        }
    }

    /// Closes the connection. The link opens it again after a back-off.
    func end(_ error: OriginError) { connection?.end(error) }

    /// Closes the link permanently. Pending tasks fail. May be called repeatedly.
    func close() {
        state = .closed
        user = nil
        timer?.stop()
        timer = nil
        let connection = connection
        self.connection = nil
        connection?.close(.closed)
        for task in waiting.takeAll() { task.fail(.closed) }
    }

    // MARK: Tasks

    /// Sends a task, immediately or when the connection is established.
    func send(_ task: RedisTask) {
        switch state {
        case .up: connection?.send(task)
        case .connecting: waiting.append(task)
        case .resting(let error): task.fail(error)
        case .closed: task.fail(.closed)
        }
    }

    /// Sends an exchange that is not a task. It fails if the connection is not established.
    func send(_ exchange: any RedisExchange) {
        if case .up = state, let connection { connection.send(exchange) } else { exchange.fail(error ?? .closed) }
    }

    // MARK: The connection

    func connectionIsUp(_ connection: RedisConnection) {
        guard connection === self.connection else { return }
        timer?.stop()
        (failures, refusals) = (0, 0)
        state = .up
        user?.linkIsUp(self)
        for task in waiting.takeAll() {
            // Do not send a task whose call has ended.
            if task.call.isDone { task.fail(.closed) } else { send(task) }
        }
    }

    func connection(_ connection: RedisConnection, invalidated keys: [[UInt8]]?) {
        user?.link(self, invalidated: keys)
    }

    func connectionEnded(_ connection: RedisConnection, _ error: OriginError) {
        guard connection === self.connection else { return }
        self.connection = nil
        rest(error)
    }

    private func rest(_ error: OriginError) {
        state = .resting(error)
        timer?.start(milliseconds: nextRest(after: error))
        user?.linkIsDown(self, error)
        for task in waiting.takeAll() { task.fail(error) }
    }

    private func nextRest(after error: OriginError) -> Int {
        failures += 1
        guard case .unsuitable = error else {
            return Int(RetryBackoff.rest(after: failures - 1, from: Self.firstRest, to: Self.longestRest))
        }
        // Retry less often: the configuration must be corrected first.
        refusals += 1
        return Int(RetryBackoff.rest(after: refusals - 1, from: Self.firstRefusedRest, to: Self.longestRefusedRest))
    }
}
