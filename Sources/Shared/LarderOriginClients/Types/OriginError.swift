/// Why an origin did not answer.
public enum OriginError: Error, Hashable, Sendable, CustomStringConvertible {
    /// No connection: the address and the reason.
    case unreachable(String)
    /// No answer within so many milliseconds. The origin may have done what it was asked for.
    case timedOut(milliseconds: Int)
    /// The origin failed lately and is not asked for a while: the server and why.
    case resting(String)
    /// The connection ended after the question was sent. The origin may have done what it was asked for.
    case interrupted(String)
    /// The origin's error reply, as it is.
    case refused(String)
    /// What the origin sent is no reply, or has more bytes than are taken.
    case malformed(String)
    /// What the origin has, or is to have, is larger than what is taken.
    case tooLarge(bytes: Int, most: Int)
    /// The origin is not what was configured: it speaks only RESP2, wants a password, is no cluster.
    case unsuitable(String)
    /// Nobody owns the key's slot, or its server is down.
    case unavailable(String)
    /// This side has closed.
    case closed

    public var description: String {
        switch self {
        case .unreachable(let reason): "the origin cannot be reached: \(reason)"
        case .timedOut(let milliseconds): "the origin did not answer within \(milliseconds) ms"
        case .resting(let reason): "the origin is not asked for a moment because it failed: \(reason)"
        case .interrupted(let reason): "the connection to the origin ended before it answered: \(reason)"
        case .refused(let reply): "the origin replied: \(reply)"
        case .malformed(let reason): "the origin sent what is no reply: \(reason)"
        case .tooLarge(let bytes, let most):
            "the value has \(bytes) bytes; at most \(most) are brought to an origin or taken from it"
        case .unsuitable(let reason): "the origin cannot be used: \(reason)"
        case .unavailable(let reason): "the origin cannot answer for this key: \(reason)"
        case .closed: "the origin is closed"
        }
    }

    static func noTLS(_ endpoint: OriginEndpoint) -> OriginError {
        .unsuitable("\(endpoint): no TLS is possible with this server")
    }

    /// Whether the origin may have done what it was asked for.
    public var isUncertain: Bool {
        switch self {
        case .timedOut, .interrupted, .malformed: true
        default: false
        }
    }

    /// Whether the origin has said no, so that asking again is in vain.
    public var isRefusal: Bool {
        switch self {
        case .refused, .tooLarge, .unsuitable: true
        default: false
        }
    }
}
