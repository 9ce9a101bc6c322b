import LarderPlatform

/// The path of a daemon's socket.
enum SocketPath {
    /// Returns the given path, or the default path for nil, if the path and the time limit are valid.
    static func checked(_ socketPath: String?, _ timeoutMilliseconds: Int) throws(LarderClientError) -> String {
        let path = socketPath ?? DefaultSocket.clientPath
        func refuse(_ message: String) -> LarderClientError {
            LarderClientError(.invalidArgument, message, operation: "connect", socketPath: path)
        }
        guard !path.isEmpty else { throw refuse("a socket's path cannot be empty") }
        guard !path.utf8.contains(0) else { throw refuse("a socket's path cannot contain a zero byte") }
        guard path.utf8.count <= UnixSocket.pathBytesMax else {
            throw refuse(
                "the socket's path has \(path.utf8.count) bytes, and at most \(UnixSocket.pathBytesMax) are allowed: "
                    + path)
        }
        guard (0...ClientOptions.timeoutMillisecondsMax).contains(timeoutMilliseconds) else {
            throw refuse(
                "the time limit is \(timeoutMilliseconds) ms, and must be 0 for none, or 1 to "
                    + "\(ClientOptions.timeoutMillisecondsMax)")
        }
        return path
    }
}
