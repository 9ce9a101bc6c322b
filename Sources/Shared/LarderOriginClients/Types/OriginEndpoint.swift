/// The network address of a server.
public enum OriginEndpoint: Hashable, Sendable, CustomStringConvertible {
    /// A host name or an IP address without brackets, and a port.
    case tcp(host: String, port: UInt16)
    /// The path of a Unix-domain socket.
    case unix(path: String)

    public var description: String {
        switch self {
        case .tcp(let host, let port): host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
        case .unix(let path): path
        }
    }
}
