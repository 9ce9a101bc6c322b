/// Every error that LarderClient throws.
///
/// `code` says what kind it is and is what programs compare; `message` says what was wrong and, where there is one, the
/// way out. Values are never part of a message; keys are shown cut to a readable length.
public struct LarderClientError: Error, Sendable {
    /// A kind of error. New kinds may be added without breaking sources.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        public let description: String
        private init(_ name: String) { description = name }

        /// Nothing answers at the socket's path.
        public static let noDaemon = Code("noDaemon")
        /// Who listens at the socket's path is a stranger: see ``ClientOptions/trustedUsers``. Nothing was sent.
        public static let untrusted = Code("untrusted")
        /// The daemon did not take the request, or did not answer, within the client's time limit. Whether a request
        /// that writes was carried out is not known.
        public static let timeout = Code("timeout")
        /// What came over the socket is not the protocol, or not the answer that the request has.
        public static let protocolViolation = Code("protocolViolation")
        /// The server answered with an error; ``LarderClientError/serverText`` has it word for word.
        public static let server = Code("server")
        /// The connection ended before the answer had come, or the client was closed.
        public static let closed = Code("closed")
        /// The task that called was cancelled. Whether a request that writes was carried out is not known, unless the
        /// message says that it was not sent.
        public static let cancelled = Code("cancelled")
        /// A transaction was begun again as often as was allowed, and each time another client had changed what it read.
        public static let conflict = Code("conflict")
        /// The operating system refused: no permission to use the socket, too many open files.
        public static let io = Code("io")
        /// A stored value is not what the caller asked for.
        public static let decode = Code("decode")
        /// A model could not be encoded.
        public static let encode = Code("encode")
        /// An argument is outside what is allowed.
        public static let invalidArgument = Code("invalidArgument")
    }

    /// What kind of error it is: for programs.
    public let code: Code
    /// What was wrong, and what would be right: for people.
    public let message: String
    /// What was being done: "connect", or the command's name.
    public let operation: String
    /// The path of the daemon's socket, if the error is about the connection.
    public let socketPath: String?
    /// The key concerned, printable and cut to 64 bytes, if one was.
    public let key: String?
    /// What the server said, word for word and with its code word in front ("ERR …"), if `code` is `server`.
    public let serverText: String?
    /// The error beneath, if there was one.
    public let underlying: (any Error)?

    package init(
        _ code: Code, _ message: String, operation: String, socketPath: String? = nil, key: String? = nil,
        serverText: String? = nil, underlying: (any Error)? = nil
    ) {
        self.code = code
        self.message = message
        self.operation = operation
        self.socketPath = socketPath
        self.key = key
        self.serverText = serverText
        self.underlying = underlying
    }

    /// The error that stands for what the server said.
    package static func server(_ text: String, operation: String, key: String? = nil) -> LarderClientError {
        LarderClientError(.server, text, operation: operation, key: key, serverText: text)
    }

    /// - Throws: `invalidArgument` for fewer attempts than one.
    static func checkAttempts(_ attempts: Int, _ operation: String) throws(LarderClientError) {
        guard attempts < 1 else { return }
        throw LarderClientError(
            .invalidArgument, "attempts is \(attempts), and must be at least 1", operation: operation)
    }

    /// The error of an update that others were always quicker than.
    static func updateConflict(_ key: [UInt8], _ attempts: Int) -> LarderClientError {
        LarderClientError(
            .conflict, "others changed the entry in each of \(attempts) attempts", operation: "update",
            key: printableKey(key))
    }

    /// The error for an answer that has not the form which the request's answers have.
    package static func unexpectedReply(to operation: String, _ expected: String, key: String? = nil)
        -> LarderClientError
    {
        LarderClientError(
            .protocolViolation, "the answer is not \(expected); is it larderd that listens there?",
            operation: operation, key: key)
    }
}

extension LarderClientError: CustomStringConvertible {
    public var description: String {
        var text = operation
        if let key { text += ", key '\(key)'" }
        return text + ": " + message
    }
}
