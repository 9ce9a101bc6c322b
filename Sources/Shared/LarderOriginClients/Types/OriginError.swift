/// Why a request to an origin failed.
public enum OriginError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The connection could not be made: the address and the reason.
    case unreachable(String)
    /// No reply within `milliseconds`. The origin may have executed the request.
    case timedOut(milliseconds: Int)
    /// The origin failed recently and is in back-off: the server and the reason.
    case resting(String)
    /// The connection was lost after the request was sent. The origin may have executed it.
    case interrupted(String)
    /// The origin's error reply, unchanged.
    case refused(String)
    /// The reply is malformed or too long.
    case malformed(String)
    /// The value is too large to be read from or written to an origin.
    case tooLarge(bytes: Int, most: Int)
    /// The origin is not what was configured: it supports only RESP2, requires a password, is not a cluster.
    case unsuitable(String)
    /// No server owns the key's slot, or its server is down.
    case unavailable(String)
    /// The origin was closed on this side.
    case closed

    public var description: String {
        switch self {
        case .unreachable(let reason): "the origin cannot be reached: \(reason)"
        case .timedOut(let milliseconds): "the origin did not answer within \(milliseconds) ms"
        case .resting(let reason): "the origin is backing off after a failure: \(reason)"
        case .interrupted(let reason): "the connection to the origin was lost before it replied: \(reason)"
        case .refused(let reply): "the origin replied: \(reply)"
        case .malformed(let reason): "malformed reply from the origin: \(reason)"
        case .tooLarge(let bytes, let most):
            "the value has \(bytes) bytes; origins are limited to \(most)"
        case .unsuitable(let reason): "the origin cannot be used: \(reason)"
        case .unavailable(let reason): "the origin is unavailable for this key: \(reason)"
        case .closed: "the origin is closed"
        }
    }

    static func noTLS(_ endpoint: OriginEndpoint) -> OriginError {
        .unsuitable("\(endpoint): TLS to this server failed")
    }

    /// Whether the origin may have executed the request.
    public var isUncertain: Bool {
        switch self {
        case .timedOut, .interrupted, .malformed: true
        default: false
        }
    }

    /// Whether the origin has refused the request, so that retrying is pointless.
    public var isRefusal: Bool {
        switch self {
        case .refused, .tooLarge, .unsuitable: true
        default: false
        }
    }
}
