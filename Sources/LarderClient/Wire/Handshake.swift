// The first exchange on every new connection.

import LarderRESP

/// The first requests of a connection, and the check of their replies. A value type.
struct Handshake {
    private enum Step {
        case hello, authentication, select, policy, tracking
    }

    private var steps: [Step] = []
    private let database: String?
    /// The requests in wire format.
    private(set) var bytes: [UInt8] = []

    /// - Parameters:
    ///   - password: the daemon's password; nil if it has none.
    ///   - database: the database to select; nil for the server's default.
    ///   - asksForKind: whether to find out if the server is a larderd.
    ///   - tracking: whether the server must report changes of keys that were read on this connection.
    ///   - pushesFetchResults: whether the server must push a key when another caller's fetch of the key ends.
    init(
        password: String? = nil, database: String?, asksForKind: Bool = false, tracking: Bool = false,
        pushesFetchResults: Bool = false
    ) {
        self.database = database
        add(.hello, ["HELLO", "3"] + (password.map { ["AUTH", "default", $0] } ?? []))
        // Needed for servers that do not support HELLO; redundant for other servers.
        if let password { add(.authentication, ["AUTH", password]) }
        if let database { add(.select, ["SELECT", database]) }
        if asksForKind { add(.policy, ["POLICY"]) }
        if tracking { add(.tracking, ["CLIENT", "TRACKING", "ON"]) }
        // With OPTIN, reads are not tracked, but FETCH tracks its key if the reply is `wait`.
        if pushesFetchResults { add(.tracking, ["CLIENT", "TRACKING", "ON", "OPTIN"]) }
    }

    private mutating func add(_ step: Step, _ words: [String]) {
        steps.append(step)
        RequestEncoder.encode(words, into: &bytes)
    }

    var replyCount: Int { steps.count }

    /// Checks the replies, ``replyCount`` of them.
    /// - Throws: the error with which the server refuses the client. A server without `HELLO` is used with RESP2.
    @discardableResult
    func check(_ replies: [RESPValue]) throws(LarderClientError) -> ServerKind {
        var server = ServerKind()
        for (step, reply) in zip(steps, replies) {
            let refusal = reply.errorMessage
            switch step {
            case .hello:
                server.speaksRESP3 = refusal == nil
                // Any other error, such as too many clients, means that the server refuses the connection.
                if let refusal, !Self.isUnknownCommand(refusal), !refusal.hasPrefix("NOPROTO") {
                    throw .server(refusal, operation: "connect")
                }
            case .authentication:
                if let refusal, !server.speaksRESP3 { throw .server(refusal, operation: "connect") }
            case .select:
                if let refusal, let database { throw Self.notSelected(database, refusal) }
            case .policy:
                // Redis does not know POLICY. Other errors are larderd's, for example if it cannot open the database.
                server.isLarder = refusal.map { !Self.isUnknownCommand($0) } ?? true
            case .tracking:
                if let refusal { throw .server(refusal, operation: "CLIENT TRACKING") }
            }
        }
        return server
    }

    /// Returns the error for a database that the server refuses to select.
    static func notSelected(_ database: String, _ refusal: String) -> LarderClientError {
        var message = "the database '\(printableKey(database.utf8))' cannot be selected: \(refusal)"
        // Redis's text does not mention the valid range.
        if refusal.contains("DB index") || refusal.contains("not an integer") {
            message +=
                "; valid names are the numbers 0 to 15 and, in larderd, names of 1 to 64 characters of a-z, 0-9, '.', '_' "
                + "and '-'"
        }
        return LarderClientError(.server, message, operation: "SELECT", serverText: refusal)
    }

    static func isUnknownCommand(_ text: String) -> Bool { text.hasPrefix("ERR unknown command") }
}
