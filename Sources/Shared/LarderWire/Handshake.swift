// The first exchange on every new connection.

import LarderRESP

/// What a connection requests from the server before all other requests. A value type.
package struct HandshakeSetup: Sendable {
    package enum Tracking: Hashable, Sendable {
        /// The server sends no invalidations.
        case none
        /// The server sends an invalidation when a key that was read on this connection changes.
        case read
        /// Reads are not tracked, but FETCH tracks its key if the reply is `wait`.
        case optIn
        /// The server sends an invalidation when a key with one of these prefixes changes; without prefixes, when any
        /// key changes.
        case broadcast([[UInt8]])
    }

    package var user: String?
    /// Returns the password, which may have changed since the previous connection; nil if there is none.
    package var password: @Sendable () -> [UInt8]? = { nil }
    /// Whether the address is `rediss://`, for error messages.
    package var usesTLS = false
    /// The database to select; nil for the server's default.
    package var database: String?
    package var tracking = Tracking.none
    /// Whether to find out if the server is a larderd.
    package var asksForKind = false
    /// Whether a server without RESP3 is refused.
    package var requiresRESP3 = false
    /// Whether the server must be part of a cluster (true) or must not (false); nil if both are allowed.
    package var isCluster: Bool?
    /// Whether to send READONLY, which lets a replica in a cluster answer reads.
    package var isReadOnly = false

    package init() {}
}

/// The first requests of a connection, and the check of their replies. A value type.
package struct Handshake {
    /// A request of the handshake. The raw value is its name in messages.
    package enum Step: String, Sendable {
        case hello = "HELLO"
        case authentication = "AUTH"
        case database = "SELECT"
        case kind = "POLICY"
        case readOnly = "READONLY"
        case tracking = "CLIENT TRACKING"
        /// An extension of larderd, which then reports only changes of the selected database. Other servers reply with
        /// an error, which is ignored.
        case databaseOnly = "CLIENT TRACKING … DATABASE"
    }

    /// Why a server cannot be used.
    package struct Refusal: Error {
        package let step: Step
        /// The server's error.
        package var text = ""
        /// The reason, if it is not an error of the server.
        package var explanation: String?
    }

    private var steps: [Step] = []
    private var taken = 0
    package let setup: HandshakeSetup
    /// The requests in wire format.
    package private(set) var bytes: [UInt8] = []
    package private(set) var server = ServerKind()

    package init(_ setup: HandshakeSetup) {
        self.setup = setup
        let password = setup.password()
        var hello = ["HELLO", "3"].map { Array($0.utf8) }
        if password != nil || setup.user != nil {
            hello += [Array("AUTH".utf8), Array((setup.user ?? "default").utf8), password ?? []]
        }
        add(.hello, hello)
        // Needed for servers that do not support HELLO; redundant for other servers.
        if let password, !setup.requiresRESP3 { add(.authentication, [Array("AUTH".utf8), password]) }
        if let database = setup.database { add(.database, ["SELECT", database]) }
        if setup.isReadOnly { add(.readOnly, ["READONLY"]) }
        if setup.asksForKind { add(.kind, ["POLICY"]) }
        switch setup.tracking {
        case .none: break
        // Do not use NOLOOP. With NOLOOP, while Redis runs a command of this connection, it does not report keys that
        // it evicts or stops tracking.
        case .read: add(.tracking, ["CLIENT", "TRACKING", "ON"])
        case .optIn: add(.tracking, ["CLIENT", "TRACKING", "ON", "OPTIN"])
        case .broadcast(let prefixes):
            var words = ["CLIENT", "TRACKING", "ON", "BCAST"].map { Array($0.utf8) }
            for prefix in prefixes { words += [Array("PREFIX".utf8), prefix] }
            add(.tracking, words + [Array("NOLOOP".utf8)])
            add(.databaseOnly, ["CLIENT", "TRACKING", "ON", "BCAST", "NOLOOP", "DATABASE"])
        }
    }

    private mutating func add(_ step: Step, _ words: [String]) { add(step, words.map { Array($0.utf8) }) }

    private mutating func add(_ step: Step, _ words: [[UInt8]]) {
        steps.append(step)
        RequestEncoder.encode(words, into: &bytes)
    }

    package var replyCount: Int { steps.count }

    /// Checks the next reply.
    /// - Returns: whether it was the last one.
    /// - Throws: the reason why the server cannot be used.
    package mutating func take(_ reply: RESPValue) throws(Refusal) -> Bool {
        let step = steps[taken]
        taken += 1
        let error = reply.errorMessage
        switch step {
        case .hello:
            server.speaksRESP3 = error == nil
            // Any other error, such as too many clients, means that the server refuses the connection.
            if let error, setup.requiresRESP3 || !Self.isUnknownCommand(error) && !error.hasPrefix("NOPROTO") {
                throw Refusal(step: step, text: error)
            }
            if error == nil, setup.isCluster != nil, let problem = unsuitableMode(reply) {
                throw Refusal(step: step, explanation: problem)
            }
        case .authentication: if let error, !server.speaksRESP3 { throw Refusal(step: step, text: error) }
        // Redis does not know POLICY. Other errors are larderd's, for example if it cannot open the database.
        case .kind: server.isLarder = error.map { !Self.isUnknownCommand($0) } ?? true
        case .database, .readOnly, .tracking: if let error { throw Refusal(step: step, text: error) }
        case .databaseOnly: break
        }
        return taken == steps.count
    }

    /// Returns a message if the server's mode in the reply to HELLO does not match the address.
    private func unsuitableMode(_ reply: RESPValue) -> String? {
        guard let pairs = reply.pairs else { return "the reply to HELLO is not that of a Redis server" }
        let scheme = setup.usesTLS ? "rediss" : "redis"
        let mode = pairs.first { $0.key.string == "mode" }?.value.string
        switch (setup.isCluster, mode) {
        case (true?, "standalone"?), (true?, "sentinel"?):
            return "the server is not part of a cluster: use \(scheme):// instead of \(scheme)+cluster://"
        case (false?, "cluster"?):
            return "the server is part of a cluster: use \(scheme)+cluster:// instead of \(scheme)://"
        case (_, "sentinel"?): return "this is a sentinel: use the address of the server"
        default: return nil
        }
    }

    package static func isUnknownCommand(_ text: String) -> Bool { text.hasPrefix("ERR unknown command") }
}

/// The kind of the server: its protocol version, and whether it is larderd.
package struct ServerKind: Equatable, Sendable {
    /// Whether replies and pushed messages are in RESP3.
    package var speaksRESP3 = false
    /// Whether the server supports Larder's own commands and options, such as `META`, `PURGE` and `POLICY` of `SET`.
    /// Redis does not.
    package var isLarder = true

    package init() {}
}
