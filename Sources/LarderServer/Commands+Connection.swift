import LarderEngine
import RESP

extension CommandTable {
    static let connectionCommands: [CommandSpec] = [
        CommandSpec(
            "ping", arity: -1, [.fast, .loading, .stale], group: "connection", since: "1.0.0", complexity: "O(1)",
            syntax: "[message]", summary: "Answers, so that one knows the daemon lives.",
            reply: "PONG, or the message as bulk", run: ConnectionCommands.ping),
        CommandSpec(
            "echo", arity: 2, [.fast, .loading, .stale], group: "connection", since: "1.0.0", complexity: "O(1)",
            syntax: "message", summary: "Returns the message.", reply: "bulk", run: ConnectionCommands.echo),
        CommandSpec(
            "quit", arity: -1, [.fast, .loading, .stale, .noScript, .allowBusy, .inMulti], group: "connection",
            since: "1.0.0", complexity: "O(1)",
            summary: "Closes the connection once the replies are sent.", reply: "OK", run: ConnectionCommands.quit),
        CommandSpec(
            "hello", arity: -1, [.fast, .loading, .stale], group: "connection", since: "6.0.0", complexity: "O(1)",
            syntax: "[protover [AUTH username password] [SETNAME clientname]]",
            summary: "Changes to RESP2 or RESP3, and tells about the server.", reply: "map",
            run: ConnectionCommands.hello),
        CommandSpec(
            "select", arity: 2, [.fast, .loading, .stale], group: "connection", since: "1.0.0", complexity: "O(1)",
            syntax: "name", summary: "Changes the connection's database; 0 is the one it begins with.", reply: "OK",
            run: ConnectionCommands.select),
        CommandSpec(
            "client", arity: -2, [.fast, .loading, .stale], group: "connection", since: "2.4.0", complexity: "O(1)",
            syntax: "ID | GETNAME | SETNAME name | SETINFO LIB-NAME|LIB-VER value | "
                + "TRACKING ON|OFF [REDIRECT id] [BCAST] [PREFIX prefix ...] [OPTIN] [OPTOUT] [NOLOOP] | "
                + "CACHING YES|NO | TRACKINGINFO | GETREDIR | HELP",
            summary: "Names the connection and tells about it.",
            reply: "ID: integer; GETNAME: bulk or null; SETNAME, SETINFO, TRACKING, CACHING: OK; TRACKINGINFO: map; "
                + "GETREDIR: integer; HELP: array",
            run: ConnectionCommands.client),
    ]
}

enum ConnectionCommands {
    @Sendable static func ping(_ call: inout Call) throws(CommandError) -> Outcome {
        guard call.count <= 2 else { throw .arity("ping") }
        if call.session.isInSubscriberMode {
            call.session.replies.array(count: 2)
            call.session.replies.bulk("pong")
            if call.count == 2 { call.session.replies.bulk(call.bytes(1)) } else { call.session.replies.bulk("") }
        } else if call.count == 2 {
            call.session.replies.bulk(call.bytes(1))
        } else {
            call.session.replies.simple("PONG")
        }
        return .done
    }

    @Sendable static func echo(_ call: inout Call) throws(CommandError) -> Outcome {
        call.session.replies.bulk(call.bytes(1))
        return .done
    }

    @Sendable static func quit(_ call: inout Call) throws(CommandError) -> Outcome {
        call.session.replies.simple("OK")
        return .close
    }

    @Sendable static func select(_ call: inout Call) throws(CommandError) -> Outcome {
        let name = call.text(1)
        guard case .current = call.session.view else {
            throw CommandError("ERR a snapshot is open: SNAPSHOT CLOSE first, it belongs to the current database")
        }
        if let number = parseInteger(call.bytes(1)) {
            // As in Redis, which has 16 databases.
            guard (0...15).contains(number) else { throw CommandError("ERR DB index is out of range") }
        } else if !DatabaseName.isValid(name) {
            throw CommandError("ERR invalid database name: \(DatabaseName.rule)")
        }
        call.session.select(try call.database(name))
        call.session.replies.simple("OK")
        return .done
    }

    // MARK: HELLO

    @Sendable static func hello(_ call: inout Call) throws(CommandError) -> Outcome {
        var version = call.session.replies.version
        if call.count >= 2 {
            guard let number = parseInteger(call.bytes(1)) else {
                throw CommandError("ERR Protocol version is not an integer or out of range")
            }
            guard let asked = RESPVersion(rawValue: Int(clamping: number)) else {
                throw CommandError("NOPROTO unsupported protocol version")
            }
            version = asked
        }
        if let name = try helloOptions(call) { call.session.name = name }
        let session = call.session
        session.replies.version = version
        session.replies.map(count: 7)
        session.replies.bulk("server")
        session.replies.bulk("redis")
        session.replies.bulk("version")
        session.replies.bulk(ServerInfo.redisVersion)
        session.replies.bulk("proto")
        session.replies.integer(version.rawValue)
        session.replies.bulk("id")
        session.replies.integer(session.id)
        session.replies.bulk("mode")
        session.replies.bulk("standalone")
        session.replies.bulk("role")
        session.replies.bulk("master")
        session.replies.bulk("modules")
        session.replies.array(count: 0)
        return .done
    }

    /// - Returns: the name that SETNAME gives, if it stands there.
    private static func helloOptions(_ call: Call) throws(CommandError) -> String? {
        var name: String?
        var index = 2
        while index < call.count {
            if call.isWord(index, "AUTH"), index + 2 < call.count {
                // No password is configured: as in Redis then, the default user may give any.
                guard call.text(index + 1) == "default" else {
                    throw CommandError("WRONGPASS invalid username-password pair or user is disabled.")
                }
                index += 3
            } else if call.isWord(index, "SETNAME"), index + 1 < call.count {
                name = try clientName(call, index + 1)
                index += 2
            } else {
                throw CommandError("ERR Syntax error in HELLO option '", shown(call.bytes(index), 128), "'")
            }
        }
        return name
    }

    // MARK: CLIENT

    @Sendable static func client(_ call: inout Call) throws(CommandError) -> Outcome {
        let session = call.session
        if call.isWord(1, "ID") {
            guard call.count == 2 else { throw .arity("client|id") }
            session.replies.integer(session.id)
        } else if call.isWord(1, "GETNAME") {
            guard call.count == 2 else { throw .arity("client|getname") }
            if session.name.isEmpty { session.replies.null() } else { session.replies.bulk(session.name) }
        } else if call.isWord(1, "SETNAME") {
            guard call.count == 3 else { throw .arity("client|setname") }
            session.name = try clientName(call, 2)
            session.replies.simple("OK")
        } else if call.isWord(1, "SETINFO") {
            guard call.count == 4 else { throw .arity("client|setinfo") }
            try setInfo(call)
            session.replies.simple("OK")
        } else if call.isWord(1, "TRACKING") {
            try TrackingCommands.tracking(call)
        } else if call.isWord(1, "CACHING") {
            try TrackingCommands.caching(call)
        } else if call.isWord(1, "GETREDIR") {
            try TrackingCommands.redirection(call)
        } else if call.isWord(1, "TRACKINGINFO") {
            try TrackingCommands.info(call)
        } else if call.isWord(1, "HELP") {
            call.help("CLIENT")
        } else {
            throw .unknownSubcommand(call, "CLIENT")
        }
        return .done
    }

    private static func setInfo(_ call: Call) throws(CommandError) {
        let isLibrary = call.isWord(2, "LIB-NAME")
        guard isLibrary || call.isWord(2, "LIB-VER") else {
            throw CommandError("ERR Unrecognized option '", shown(call.bytes(2), 128), "'")
        }
        guard isPlain(call.bytes(3)) else {
            throw CommandError(
                "ERR \(isLibrary ? "lib-name" : "lib-ver") cannot contain spaces, newlines or special characters.")
        }
        if isLibrary { call.session.libraryName = call.text(3) } else { call.session.libraryVersion = call.text(3) }
    }

    private static func clientName(_ call: Call, _ index: Int) throws(CommandError) -> String {
        guard isPlain(call.bytes(index)) else {
            throw CommandError("ERR Client names cannot contain spaces, newlines or special characters.")
        }
        return call.text(index)
    }

    private static func isPlain(_ bytes: UnsafeRawBufferPointer) -> Bool {
        bytes.count <= Limits.clientNameBytesMax && bytes.allSatisfy { $0 >= 0x21 && $0 <= 0x7E }
    }
}
