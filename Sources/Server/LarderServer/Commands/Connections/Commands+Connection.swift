import LarderCommandCatalog
import LarderEngine
import LarderRESP

extension CommandTable {
    static let connectionCommands: Handlers = [
        .ping: ping,
        .echo: { call in
            call.session.replies.bulk(call.bytes(1))
            return .done
        },
        .quit: { call in
            call.session.replies.simple("OK")
            return .close
        },
        .hello: hello,
        .select: select,
        .auth: auth,
        .reset: reset,
        .readonly: { call in call.ok() },
        .readwrite: { call in call.ok() },
    ]

    @Sendable private static func ping(_ call: inout Call) throws(CommandError) -> Outcome {
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

    @Sendable private static func select(_ call: inout Call) throws(CommandError) -> Outcome {
        let name = call.text(1)
        guard call.session.seesCurrent else {
            throw CommandError("ERR a snapshot of the current database is open: SNAPSHOT CLOSE first")
        }
        if let number = parseInteger(call.bytes(1)) {
            try checkDatabaseNumber(number)
        } else if !DatabaseName.isValid(name) {
            throw CommandError("ERR invalid database name: \(DatabaseName.rule)")
        }
        call.session.select(try call.database(name))
        return call.ok()
    }

    // MARK: AUTH and RESET

    @Sendable private static func auth(_ call: inout Call) throws(CommandError) -> Outcome {
        guard call.count <= 3 else { throw .syntax }
        if call.count == 2, call.server.password == nil {
            throw CommandError(
                "ERR AUTH <password> called without any password configured for the default user. "
                    + "Are you sure your configuration is correct?")
        }
        try authenticate(call, user: call.count == 3 ? 1 : nil, password: call.count - 1)
        return call.ok()
    }

    /// Checks a user name and a password. The only user is `default`. If no password is set, any password is accepted.
    private static func authenticate(_ call: Call, user: Int?, password: Int) throws(CommandError) {
        let isUser = user.map { call.text($0) == "default" } ?? true
        guard isUser, isPassword(call.bytes(password), call.server.password) else {
            // Shorten the name, as in the other lines of ACL LOG.
            let name = user.map { String(decoding: call.bytes($0).prefix(Rights.Refusal.shownMax), as: UTF8.self) }
            call.session.rights.notePassword(
                call.spec?.name.uppercased() ?? "AUTH", name: name ?? "default",
                call.session.transactions.isIdle ? .toplevel : .multi)
            throw CommandError("WRONGPASS invalid username-password pair or user is disabled.")
        }
        call.session.modes.isAuthenticated = true
    }

    /// Compares two passwords. The time does not depend on the number of equal bytes, so it reveals nothing.
    private static func isPassword(_ given: UnsafeRawBufferPointer, _ password: [UInt8]?) -> Bool {
        guard let password else { return true }
        var difference = given.count ^ password.count
        for index in 0..<given.count { difference |= Int(given[index] ^ password[index % max(1, password.count)]) }
        return difference == 0 && !password.isEmpty
    }

    @Sendable private static func reset(_ call: inout Call) throws(CommandError) -> Outcome {
        let session = call.session
        session.transactions.discard()
        session.endSubscriptions()
        session.queries.stopAll()
        if session.tracking.client != nil { session.track(nil) }
        session.waits.end()
        session.view = .current
        session.select(call.server.standardDatabase)
        session.endMonitoring()
        session.name = ""
        // As in Redis, CLIENT REPLY SKIP still suppresses the reply to RESET.
        if session.modes.replyMode == .off { session.modes.replyMode = .on }
        session.replies.version = .two
        session.noteRecord()
        session.modes.takesAttributes = false
        session.modes.isAuthenticated = call.server.password == nil
        session.record.isNoEvict.store(false, ordering: .relaxed)
        session.record.isNoTouch.store(false, ordering: .relaxed)
        session.record.isUnlogged.store(false, ordering: .relaxed)
        session.replies.simple("RESET")
        return .done
    }

    // MARK: HELLO

    @Sendable private static func hello(_ call: inout Call) throws(CommandError) -> Outcome {
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
        try readOptions(call)
        guard call.session.modes.isAuthenticated else {
            throw CommandError(
                "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO AUTH <user> "
                    + "<pass> option can be used to authenticate the client and select the RESP protocol version "
                    + "at the same time")
        }
        let session = call.session
        if version == .two { session.queries.stopAll() }
        session.replies.version = version
        session.noteRecord()
        session.replies.map(count: 7)
        session.replies.field("server", "redis")
        session.replies.field("version", Version.redis)
        session.replies.field("proto", version.rawValue)
        session.replies.field("id", session.id)
        session.replies.field("mode", "standalone")
        session.replies.field("role", "master")
        session.replies.field("modules", [])
        return .done
    }

    /// Applies the options of HELLO one by one. As in Redis, the options before an invalid option take effect.
    private static func readOptions(_ call: Call) throws(CommandError) {
        var index = 2
        while index < call.count {
            if call.isWord(index, "AUTH"), index + 2 < call.count {
                try authenticate(call, user: index + 1, password: index + 2)
                index += 3
            } else if call.isWord(index, "SETNAME"), index + 1 < call.count {
                call.session.name = try clientName(call, index + 1)
                index += 2
            } else {
                throw CommandError("ERR Syntax error in HELLO option '", shown(call.bytes(index), 128), "'")
            }
        }
    }
}
