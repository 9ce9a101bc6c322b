/// The address of a server.
public enum OriginEndpoint: Hashable, Sendable, CustomStringConvertible {
    /// A name or an address without brackets, and a port.
    case tcp(host: String, port: UInt16)
    /// A path in the file system.
    case unix(path: String)

    public var description: String {
        switch self {
        case .tcp(let host, let port): host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
        case .unix(let path): path
        }
    }
}
