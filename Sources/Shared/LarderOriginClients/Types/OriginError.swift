/// Why a request to an origin failed.
public enum OriginError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The connection could not be made. The text contains the address and the reason.
    case unreachable(String)
    /// No reply within `milliseconds`. The origin may have executed the request.
    case timedOut(milliseconds: Int)
    /// The request was not sent, because the server has failed recently or has too many pending requests. The text
    /// contains the server and the reason.
    case resting(String)
    /// The connection was lost after the request was sent. The origin may have executed the request.
    case interrupted(String)
    /// The origin has replied with this error.
    case refused(String)
    /// The reply is malformed or too long.
    case malformed(String)
    /// The value is larger than ``OriginLimits/valueBytes`` (or the values of one call are too large together).
    case tooLarge(bytes: Int, most: Int)
    /// The origin does not match the configuration: it is not a cluster, requires a password, or has only RESP2.
    case unsuitable(String)
    /// No server owns the key's slot, or the server that owns it cannot execute requests now.
    case unavailable(String)
    /// This program has closed the origin.
    case closed

    public var description: String {
        switch self {
        case .unreachable(let reason): "the origin cannot be reached: \(reason)"
        case .timedOut(let milliseconds): "the origin did not answer within \(milliseconds) ms"
        case .resting(let reason): "the origin gets no requests for a while: \(reason)"
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

    /// Whether the origin may have executed the request.
    public var isUncertain: Bool {
        switch self {
        case .timedOut, .interrupted, .malformed: true
        default: false
        }
    }

    /// Whether the request was rejected, so that a retry would fail too.
    public var isRefusal: Bool {
        switch self {
        case .refused, .tooLarge, .unsuitable: true
        default: false
        }
    }
}
