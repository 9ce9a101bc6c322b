/// Every error that LarderClient throws.
///
/// Programs compare `code`, the kind of the error. `message` says what was wrong and, if there is one, the remedy.
/// Values are never part of a message; keys are shown cut to a readable length.
public struct LarderClientError: Error, Sendable {
    /// A kind of error. New kinds may be added without breaking sources.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        public let description: String
        private init(_ name: String) { description = name }

        /// Nothing answers at the socket's path.
        public static let noDaemon = Code("noDaemon")
        /// The process at the socket's path belongs to somebody else: see ``ClientOptions/trustedUsers``. Nothing was
        /// sent.
        public static let untrusted = Code("untrusted")
        /// The daemon did not accept the request, or did not answer, within the client's time limit. It is unknown
        /// whether a request that writes was carried out.
        public static let timeout = Code("timeout")
        /// The bytes from the socket are not the protocol, or not a reply to the request.
        public static let protocolViolation = Code("protocolViolation")
        /// The server answered with an error; ``LarderClientError/serverText`` has its text.
        public static let server = Code("server")
        /// The connection ended before the reply came, or the client was closed.
        public static let closed = Code("closed")
        /// The calling task was cancelled. It is unknown whether a request that writes was carried out, unless the
        /// message says that it was not sent.
        public static let cancelled = Code("cancelled")
        /// An update or a transaction has used all its attempts, and each time another client had changed what it read.
        public static let conflict = Code("conflict")
        /// Somebody else held the lock for as long as the call may wait.
        public static let locked = Code("locked")
        /// The lock was lost while its body ran: somebody else may have held it at the same time.
        public static let lockLost = Code("lockLost")
        /// The body of a lock has asked for the same lock: it would wait for itself.
        public static let recursion = Code("recursion")
        /// The operating system refused: no permission to use the socket, too many open files.
        public static let io = Code("io")
        /// A stored value is not of the requested type.
        public static let decode = Code("decode")
        /// A model could not be encoded.
        public static let encode = Code("encode")
        /// An argument is outside the allowed range.
        public static let invalidArgument = Code("invalidArgument")
    }

    /// What kind of error it is: for programs.
    public let code: Code
    /// What was wrong, and what would be right: for people.
    public let message: String
    /// The operation: "connect", or the command's name.
    public let operation: String
    /// The path of the daemon's socket, if the error is about the connection.
    public let socketPath: String?
    /// The database, if the error is about one.
    public private(set) var database: String?
    /// The key, printable and cut to 64 bytes, if the error is about one.
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

    /// The error with the database that it is about, unless it names one.
    func about(_ database: String) -> LarderClientError {
        var error = self
        error.database = error.database ?? database
        return error
    }

    /// The error for a server's error reply.
    package static func server(_ text: String, operation: String, key: String? = nil) -> LarderClientError {
        LarderClientError(.server, text, operation: operation, key: key, serverText: text)
    }

    /// - Throws: `invalidArgument` for fewer attempts than one.
    static func checkAttempts(_ attempts: Int?, _ operation: String) throws(LarderClientError) {
        guard let attempts, attempts < 1 else { return }
        throw LarderClientError(
            .invalidArgument, "attempts is \(attempts), and must be at least 1", operation: operation)
    }

    /// The error of an update that somebody else has disturbed in every attempt.
    static func updateConflict(_ key: [UInt8], _ attempts: UpdateAttempts) -> LarderClientError {
        LarderClientError(.conflict, attempts.conflict, operation: "update", key: printableKey(key))
    }

    /// The error for a reply that does not have the form of the request's replies.
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
