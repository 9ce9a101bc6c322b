#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// An error of LarderClient.
///
/// Programs compare `code`, the kind of the error. `message` describes the problem and, if there is one, the remedy.
/// Messages never contain values; keys are shown cut to a readable length.
public struct LarderClientError: Error, Sendable {
    /// A kind of error. New kinds may be added without breaking sources.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        public let description: String
        private init(_ name: String) { description = name }

        /// Nothing answers at the socket's path.
        public static let noDaemon = Code("noDaemon")
        /// The process at the socket's path belongs to another user: see ``ClientOptions/trustedUsers``. Nothing was
        /// sent.
        public static let untrusted = Code("untrusted")
        /// The daemon did not accept or answer the request within the client's time limit. It is unknown whether a
        /// request that writes was executed.
        public static let timeout = Code("timeout")
        /// The bytes from the socket are not the protocol, or not a reply to the request.
        public static let protocolViolation = Code("protocolViolation")
        /// The server answered with an error; ``LarderClientError/serverText`` has its text.
        public static let server = Code("server")
        /// The connection ended before the reply arrived, or the client was closed.
        public static let closed = Code("closed")
        /// The calling task was cancelled. It is unknown whether a request that writes was executed, unless the message
        /// states that it was not sent.
        public static let cancelled = Code("cancelled")
        /// All attempts of an update or a transaction failed, because another client had changed the values that it
        /// read.
        public static let conflict = Code("conflict")
        /// There is no fresh entry to edit.
        public static let noSuchEntry = Code("noSuchEntry")
        /// Another holder kept the lock for as long as the call may wait.
        public static let locked = Code("locked")
        /// The lock was lost while its body ran: another holder may have had it at the same time.
        public static let lockLost = Code("lockLost")
        /// The body of a lock has requested the same lock, so it would wait for itself; or the closure of an update has
        /// updated the same key, so it would conflict with itself.
        public static let recursion = Code("recursion")
        /// The operating system refused a call, for example because of missing permissions for the socket or too many
        /// open files.
        public static let io = Code("io")
        /// A stored value is not of the requested type.
        public static let decode = Code("decode")
        /// A model could not be encoded.
        public static let encode = Code("encode")
        /// The closure of a filter, or a predicate, has thrown: see ``LarderClientError/underlying``.
        public static let filterFailed = Code("filterFailed")
        /// An argument is outside the allowed range.
        public static let invalidArgument = Code("invalidArgument")
    }

    /// The kind of the error, for programs.
    public let code: Code
    /// The problem and its remedy, for people.
    public let message: String
    /// The operation: "connect", or the command's name.
    public let operation: String
    /// The path of the daemon's socket, if the error is about the connection.
    public let socketPath: String?
    /// The database, if the error is about a database.
    public private(set) var database: String?
    /// The key, printable and cut to 64 bytes, if the error is about a key.
    public let key: String?
    /// The server's text, unchanged, with its code word in front ("ERR …"), if `code` is `server`.
    public let serverText: String?
    /// The underlying error, if there is one.
    public let underlying: (any Error)?

    package init(
        _ code: Code, _ message: String, operation: String, socketPath: String? = nil, database: String? = nil,
        key: String? = nil,
        serverText: String? = nil, underlying: (any Error)? = nil
    ) {
        self.code = code
        self.message = message
        self.operation = operation
        self.socketPath = socketPath
        self.database = database
        self.key = key
        self.serverText = serverText
        self.underlying = underlying
    }

    /// Returns the error with the name of a database, unless the error already has one.
    func about(_ database: String) -> LarderClientError {
        var error = self
        error.database = error.database ?? database
        return error
    }

    /// Runs `body`, and adds the name of a database to its errors.
    @discardableResult
    static func naming<Result>(
        _ database: @autoclosure () -> String, _ body: () throws(LarderClientError) -> Result
    ) throws(LarderClientError) -> Result {
        do throws(LarderClientError) { return try body() } catch { throw error.about(database()) }
    }

    package static func server(_ text: String, operation: String, key: String? = nil) -> LarderClientError {
        LarderClientError(.server, text, operation: operation, key: key, serverText: text)
    }

    /// Returns the error for a reply of an unexpected form.
    package static func unexpectedReply(to operation: String, _ expected: String, key: String? = nil)
        -> LarderClientError
    {
        LarderClientError(
            .protocolViolation, "the answer is not \(expected); is the server larderd?",
            operation: operation, key: key)
    }
}

extension LarderClientError: CustomStringConvertible {
    public var description: String {
        var text = operation
        if let database { text += " in database '\(database)'" }
        if let key { text += ", key '\(key)'" }
        return text + ": " + message
    }
}

// Foundation shows errors by `localizedDescription`, which does not use `description`.

extension LarderClientError: LocalizedError {
    /// The same text as ``description``.
    public var errorDescription: String? { description }
}
