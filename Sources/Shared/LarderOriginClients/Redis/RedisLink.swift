import LarderPlatform
import LarderRESP
import LarderWire

/// A connection to a server of an origin. After a loss, the connection is opened again, with an increasing back-off.
///
/// Used on the loop's thread only. Close it before you release it.
final class RedisLink: LinkEvents {
    private let endpoint: OriginEndpoint
    private let limits: OriginLimits
    private let usesTLS: Bool
    private let link: Link
    /// Receives the events of the connection; nil if nothing needs them.
    private weak var user: RedisServer?
    private(set) var isUp = false
    private var isClosed = false
    private var lastError: OriginError?
    /// The number of the connection that is up.
    private var number = 0
    private var waiting = Deque<RedisTask>()

    /// - Parameter isKept: whether to open the connection again after a loss.
    init(
        _ loop: SocketLoop, _ endpoint: OriginEndpoint, _ setup: HandshakeSetup, _ limits: OriginLimits,
        tls: TLSContext?, user: RedisServer?, isKept: Bool = true
    ) {
        self.endpoint = endpoint
        self.limits = limits
        self.user = user
        usesTLS = tls != nil
        var settings = LinkSettings(endpoint.linkEndpoint)
        if let tls { settings.layer = { tls.session(to: endpoint) } }
        settings.setup = setup
        settings.connectMilliseconds = limits.connect
        settings.staysConnected = isKept
        settings.waitsForBacklog = false
        settings.limits = RESPLimits(
            bulkBytesMax: limits.valueBytes, requestBytesMax: max(limits.valueBytes * 2, 64 << 20),
            elementsMax: 4 << 20)
        settings.skipsLongStrings = true
        settings.submitsOnLoop = true
        settings.marksBatches = true
        settings.backOff = { failures, failure in
            // After a refusal, retry less often: some servers block clients that retry too often, and the configuration
            // must be corrected first.
            if case .unsuitable? = failure.refusal { return RetryBackoff.rest(after: failures, from: 1_000, to: 5_000) }
            return RetryBackoff.rest(after: failures, from: 50, to: 1_000)
        }
        link = Link(settings, on: loop)
        link.attach(self)
    }

    /// Why nothing can be sent now; nil if tasks can be sent or wait for the connection.
    var error: OriginError? { isClosed ? .closed : link.failure == nil ? nil : lastError }

    var bytesReceived: Int { link.receivedBytes }
    var unsentBytes: Int { link.unsentBytes }

    func open() { link.open() }

    /// Ends the connection. The link opens it again after a back-off.
    func drop(_ reason: String) { link.drop(reason) }

    /// Closes the link permanently. Pending tasks fail. May be called repeatedly.
    func close() {
        isClosed = true
        isUp = false
        user = nil
        link.close()
        for task in waiting.takeAll() { task.fail(.closed) }
    }

    // MARK: Requests

    /// Sends a task, immediately or when the connection is established. During the back-off, the task fails.
    func send(_ task: RedisTask) {
        if let error { return task.fail(error) }
        guard isUp else { return waiting.append(task) }
        var bytes: [UInt8] = []
        let count = task.encode(into: &bytes)
        let exchange = Exchange(bytes: bytes, replyCount: count, name: [], connectionNumber: number)
        exchange.arrived = { task.note($0, skippedBytes: $1) }
        exchange.accepts = { task.accepts($0, $1) }
        link.submit(
            exchange,
            .closure { [self] outcome in
                switch outcome {
                case .success(let replies): task.end(replies)
                case .failure(let failure): task.fail(error(failure))
                }
            })
    }

    /// Sends commands that are not a task, like ``send(_:)-(RedisTask)``.
    /// - Parameters:
    ///   - timeout: the time limit in milliseconds, including the wait for the connection; 0 for no limit.
    ///   - accepts: see ``Exchange/accepts``.
    func send(
        _ commands: [[[UInt8]]], timeout: Int = 0, accepts: ((_ index: Int, RESPValue) -> Bool)? = nil,
        _ completion: @escaping (Result<[RESPValue], OriginError>) -> Void
    ) {
        let exchange = Exchange(
            commands, connectionNumber: isUp ? number : nil, timeoutMilliseconds: timeout)
        exchange.accepts = accepts
        link.submit(exchange, .closure { [self] outcome in completion(outcome.mapError { error($0, limit: timeout) }) })
    }

    // MARK: Events

    func linkIsReady(_ link: Link) {
        guard !isClosed else { return }
        isUp = true
        lastError = nil
        number = link.currentNumber
        user?.linkIsUp(self)
        for task in waiting.takeAll() {
            // Do not send a task whose call has ended.
            if task.call.isDone { task.fail(.closed) } else { send(task) }
        }
    }

    func link(_ link: Link, failed failure: WireFailure) {
        guard !isClosed else { return }
        let error = describe(failure)
        isUp = false
        lastError = error
        user?.linkIsDown(self, error)
        for task in waiting.takeAll() { task.fail(error) }
    }

    func link(_ link: Link, pushed words: [RESPValue]) {
        guard words.count == 2, words[0].bytes == Array("invalidate".utf8) else { return }
        if words[1] == .null {
            user?.link(self, invalidated: nil)
        } else if let keys = words[1].elements {
            user?.link(self, invalidated: keys.compactMap(\.bytes))
        }
    }

    // MARK: Errors

    private func error(_ failure: WireFailure, limit: Int = 0) -> OriginError {
        if case .closedByClient = failure.kind { return .closed }
        return lastError ?? (limit > 0 ? .timedOut(milliseconds: limit) : describe(failure))
    }

    private func describe(_ failure: WireFailure) -> OriginError {
        var reason: String
        switch failure.kind {
        case .refused: return failure.refusal ?? .closed
        case .protocolViolation(let text):
            return isUp
                ? .malformed("\(endpoint): \(text)") : .unsuitable("\(endpoint): \(text): is it a Redis server?")
        case .timeout:
            reason =
                "no answer to the greeting within \(limits.connect) ms"
                + (usesTLS ? "; if the server does not use TLS, use redis:// instead of rediss://" : "")
        case .unresolved(let text), .dropped(let text): reason = text
        case .system(_, let number): reason = SystemErrorText.of(number)
        default: reason = failure.finalError ?? "the server closed the connection"
        }
        if isUp { return .interrupted("\(endpoint): \(reason)") }
        if case .tcp = endpoint {
            switch failure.kind {
            case .closed where !usesTLS: reason += "; if the server requires TLS, use rediss:// instead of redis://"
            case .unresolved, .system:
                guard TCPSocket.isForbidden else { break }
                reason += ": larderd's service allows only Unix-domain sockets, see docs/Operating.md#origins-over-tcp"
            default: break
            }
        }
        return .unreachable("\(endpoint): \(reason)")
    }
}

extension OriginEndpoint {
    fileprivate var linkEndpoint: LinkEndpoint {
        switch self {
        case .tcp(let host, let port): .tcp(host: host, port: port)
        case .unix(let path): .unix(path: path)
        }
    }
}

extension WireFailure {
    /// The error if the server has refused the handshake; nil for other failures.
    fileprivate var refusal: OriginError? {
        guard case .refused(let refusal) = kind else { return nil }
        let (step, message) = (refusal.step, refusal.text)
        if let explanation = refusal.explanation { return .unsuitable(explanation) }
        return switch message.prefix(while: { $0 != " " }) {
        case "NOAUTH": .unsuitable("the server requires a password: \(message)")
        case "WRONGPASS": .unsuitable("user or password is wrong: \(message)")
        case "NOPROTO": .unsuitable("the server does not support RESP3 (Redis 6 or later is required): \(message)")
        case "DENIED": .unsuitable("the server refuses clients from other machines: \(message)")
        case "LOADING": .unavailable("the server is loading its data: \(message)")
        case "NOPERM":
            .unsuitable("the user needs the right to run \(step.rawValue) to receive invalidations: \(message)")
        case "ERR" where step == .hello && message.contains("unknown command"):
            .unsuitable("the server supports only RESP2; Redis 6 or later is required: \(message)")
        default: .unsuitable("\(step.rawValue): \(message)")
        }
    }
}
