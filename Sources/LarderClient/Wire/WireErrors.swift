// The client's errors for connections, and the check of a socket's path.

import LarderPlatform
import LarderWire

extension WireFailure {
    /// Returns the error for callers.
    /// - Parameter limit: the time limit, in milliseconds, for the message.
    func error(socketPath: String, operation: String, limit: Int) -> LarderClientError {
        if let finalError {
            return LarderClientError(.server, explanation ?? finalError, operation: operation, serverText: finalError)
        }
        let (code, message): (LarderClientError.Code, String)
        switch kind {
        case .noDaemon:
            code = .noDaemon
            message = "no daemon answers at \(socketPath): start one with: larderd --socket \(socketPath)"
        case .notASocket:
            code = .noDaemon
            message = "\(socketPath) is not a socket: no daemon can answer there"
        case .untrusted(let text): (code, message) = (.untrusted, text)
        case .timeout:
            code = .timeout
            message = "the daemon at \(socketPath) did not answer within \(limit) ms"
        case .closedBeforeRequest:
            code = .closed
            message = "the daemon at \(socketPath) had closed the connection; the request was not sent"
        case .closed:
            code = .closed
            message =
                "the daemon at \(socketPath) closed the connection before it answered; "
                + "it is unknown whether the request was executed"
        case .protocolViolation(let text):
            code = .protocolViolation
            message = "the server at \(socketPath) does not use larderd's protocol: \(text)"
        case .system(let call, let number):
            code = .io
            message = "\(call) failed for \(socketPath): \(SystemErrorText.of(number))"
        }
        return LarderClientError(code, message, operation: operation, socketPath: socketPath)
    }
}

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
