import LarderCommandCatalog
import LarderEngine
import LarderPlatform
import LarderRESP

extension CommandTable {
    static let clientCommands: Handlers = [
        .clientID: ClientCommands.id,
        .clientGetname: ClientCommands.getname,
        .clientSetname: ClientCommands.setname,
        .clientSetinfo: ClientCommands.setinfo,
        .clientInfo: ClientCommands.info,
        .clientList: ClientCommands.list,
        .clientKill: ClientCommands.kill,
        .clientReply: ClientCommands.reply,
        .clientPause: ClientCommands.pause,
        .clientUnpause: ClientCommands.unpause,
        .clientNoEvict: ClientCommands.noEvict,
        .clientNoTouch: ClientCommands.noTouch,
        .clientNoLog: ClientCommands.noLog,
        .clientUnblock: ClientCommands.unblock,
        .clientTracking: TrackingCommands.tracking,
        .clientCaching: TrackingCommands.caching,
        .clientGetredir: TrackingCommands.redirection,
        .clientTrackinginfo: TrackingCommands.info,
    ]
}

/// CLIENT and its subcommands.
enum ClientCommands {
    // MARK: Names

    @Sendable static func id(_ call: inout Call) throws(CommandError) -> Outcome {
        return call.reply(call.session.id)
    }

    @Sendable static func getname(_ call: inout Call) throws(CommandError) -> Outcome {
        let name = call.session.name
        if name.isEmpty { call.session.replies.null() } else { call.session.replies.bulk(name) }
        return .done
    }

    @Sendable static func setname(_ call: inout Call) throws(CommandError) -> Outcome {
        call.session.name = try name(call, 2)
        return call.ok()
    }

    @Sendable static func setinfo(_ call: inout Call) throws(CommandError) -> Outcome {
        let isLibrary = call.isWord(2, "LIB-NAME")
        guard isLibrary || call.isWord(2, "LIB-VER") else {
            throw CommandError("ERR Unrecognized option '", shown(call.bytes(2), 128), "'")
        }
        guard isPlain(call.bytes(3)) else {
            throw CommandError(
                "ERR \(isLibrary ? "lib-name" : "lib-ver") cannot contain spaces, newlines or special characters.")
        }
        let text = call.text(3)
        call.session.record.change { if isLibrary { $0.library = text } else { $0.libraryVersion = text } }
        return call.ok()
    }

    /// Parses a connection's name, for CLIENT SETNAME and the option SETNAME of HELLO.
    static func name(_ call: Call, _ index: Int) throws(CommandError) -> String {
        guard isPlain(call.bytes(index)) else {
            throw CommandError("ERR Client names cannot contain spaces, newlines or special characters.")
        }
        return call.text(index)
    }

    private static func isPlain(_ bytes: UnsafeRawBufferPointer) -> Bool {
        bytes.count <= Limits.clientNameBytesMax && bytes.allSatisfy { $0 >= 0x21 && $0 <= 0x7E }
    }

    // MARK: Information about connections

    @Sendable static func info(_ call: inout Call) throws(CommandError) -> Outcome {
        call.session.noteRecord()
        call.session.replies.verbatim(call.session.record.line(now: call.now) + "\n")
        return .done
    }

    @Sendable static func list(_ call: inout Call) throws(CommandError) -> Outcome {
        call.session.noteRecord()
        var records = call.server.clientRegistry.all
        if call.count == 4, call.isWord(2, "TYPE") {
            let kind = try kind(call, 3)
            records = records.filter { $0.kind == kind }
        } else if call.count >= 4, call.isWord(2, "ID") {
            var wanted: Set<Int64> = []
            for index in 3..<call.count {
                guard let id = parseInteger(call.bytes(index)) else { throw CommandError("ERR Invalid client ID") }
                wanted.insert(id)
            }
            records = records.filter { wanted.contains($0.id) }
        } else if call.count > 2 {
            throw .syntax
        }
        let now = call.now
        call.session.replies.verbatim(records.map { $0.line(now: now) + "\n" }.joined())
        return .done
    }

    private static func kind(_ call: Call, _ index: Int) throws(CommandError) -> ClientRecord.Kind {
        guard let kind = ClientRecord.Kind(call.text(index)) else {
            throw CommandError("ERR Unknown client type '", shown(call.bytes(index), 128), "'")
        }
        return kind
    }

    // MARK: Closing connections

    private struct Filter {
        var id: Int64?
        var kind: ClientRecord.Kind?
        var address: String?
        var localAddress: String?
        var user: String?
        var skipsOwn = true

        func matches(_ record: ClientRecord, own: Int64) -> Bool {
            if let id, record.id != id { return false }
            if let kind, record.kind != kind { return false }
            if let address, record.address != address { return false }
            if let user, record.known.user != user { return false }
            if let localAddress, record.address != localAddress { return false }
            return !(skipsOwn && record.id == own)
        }
    }

    @Sendable static func kill(_ call: inout Call) throws(CommandError) -> Outcome {
        var filter = Filter()
        let isOldForm = call.count == 3
        if isOldForm {
            filter.address = call.text(2)
            filter.skipsOwn = false
        } else {
            filter = try readFilter(call)
        }
        let own = call.session.id
        var killed = 0
        var isOwnKilled = false
        for record in call.server.clientRegistry.all where filter.matches(record, own: own) {
            killed += 1
            // If this is the client's own connection, close it only after the reply is sent.
            if record.id == own { isOwnKilled = true } else { record.close("CLIENT KILL from client \(own)") }
        }
        if isOldForm, killed == 0 { throw CommandError("ERR No such client") }
        if isOldForm { call.session.replies.simple("OK") } else { call.session.replies.integer(killed) }
        return isOwnKilled ? .close : .done
    }

    private static func readFilter(_ call: Call) throws(CommandError) -> Filter {
        var filter = Filter()
        var index = 2
        while index < call.count {
            guard index + 1 < call.count else { throw .syntax }
            if call.isWord(index, "ID") {
                guard let id = parseInteger(call.bytes(index + 1)), id > 0 else {
                    throw CommandError("ERR client-id should be greater than 0")
                }
                filter.id = id
            } else if call.isWord(index, "TYPE") {
                filter.kind = try kind(call, index + 1)
            } else if call.isWord(index, "ADDR") {
                filter.address = call.text(index + 1)
            } else if call.isWord(index, "LADDR") {
                filter.localAddress = call.text(index + 1)
            } else if call.isWord(index, "USER") {
                let name = call.text(index + 1)
                guard name == "default" || call.server.access.isUser(name) else {
                    throw CommandError("ERR No such user '", shown(call.bytes(index + 1), 128), "'")
                }
                filter.user = name
            } else if call.isWord(index, "SKIPME"), call.isWord(index + 1, "YES") || call.isWord(index + 1, "NO") {
                filter.skipsOwn = call.isWord(index + 1, "YES")
            } else {
                throw .syntax
            }
            index += 2
        }
        return filter
    }

    @Sendable static func unblock(_ call: inout Call) throws(CommandError) -> Outcome {
        guard call.count <= 4 else {
            throw CommandError(
                "ERR unknown subcommand or wrong number of arguments for '", shown(call.bytes(1), 128),
                "'. Try CLIENT HELP.")
        }
        if call.count == 4, !call.isWord(3, "TIMEOUT"), !call.isWord(3, "ERROR") {
            throw CommandError("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR")
        }
        _ = try call.integer(2)
        return call.reply(0)
    }

    // MARK: Behaviour of the connection

    @Sendable static func reply(_ call: inout Call) throws(CommandError) -> Outcome {
        if call.isWord(2, "ON") {
            call.session.modes.replyMode = .on
            call.session.replies.simple("OK")
        } else if call.isWord(2, "OFF") {
            call.session.modes.replyMode = .off
        } else if call.isWord(2, "SKIP") {
            if call.session.modes.replyMode != .off { call.session.modes.replyMode = .skipsNext }
        } else {
            throw .syntax
        }
        return .done
    }

    @Sendable static func pause(_ call: inout Call) throws(CommandError) -> Outcome {
        var isForAll = true
        if call.count == 4 {
            guard call.isWord(3, "WRITE") || call.isWord(3, "ALL") else {
                throw CommandError("ERR CLIENT PAUSE mode must be WRITE or ALL")
            }
            isForAll = call.isWord(3, "ALL")
        } else if call.count > 4 {
            throw CommandError(
                "ERR unknown subcommand or wrong number of arguments for '", shown(call.bytes(1), 128),
                "'. Try CLIENT HELP.")
        }
        guard let milliseconds = parseInteger(call.bytes(2)) else {
            throw CommandError("ERR timeout is not an integer or out of range")
        }
        guard milliseconds >= 0 else { throw CommandError("ERR timeout is negative") }
        let now = call.server.engine.monotonic()
        let (end, overflow) = now.addingReportingOverflow(milliseconds)
        if overflow { throw CommandError("ERR timeout is out of range") }
        // As in Redis, no entry expires during the pause.
        call.server.engine.holdExpiry(until: call.server.pause.begin(until: end, all: isForAll, now: now))
        call.server.noteAttention()
        return call.ok()
    }

    @Sendable static func unpause(_ call: inout Call) throws(CommandError) -> Outcome {
        call.server.pause.end()
        call.server.engine.holdExpiry(until: 0)
        call.server.noteAttention()
        return call.ok()
    }

    private static func onOff(_ call: Call) throws(CommandError) -> Bool {
        guard call.isWord(2, "ON") || call.isWord(2, "OFF") else { throw .syntax }
        return call.isWord(2, "ON")
    }

    @Sendable static func noEvict(_ call: inout Call) throws(CommandError) -> Outcome {
        call.session.record.isNoEvict.store(try onOff(call), ordering: .relaxed)
        return call.ok()
    }

    @Sendable static func noTouch(_ call: inout Call) throws(CommandError) -> Outcome {
        call.session.record.isNoTouch.store(try onOff(call), ordering: .relaxed)
        return call.ok()
    }

    @Sendable static func noLog(_ call: inout Call) throws(CommandError) -> Outcome {
        call.session.record.isUnlogged.store(try onOff(call), ordering: .relaxed)
        return call.ok()
    }
}
