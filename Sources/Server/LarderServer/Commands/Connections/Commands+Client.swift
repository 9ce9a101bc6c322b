import LarderCommandCatalog
import LarderEngine
import LarderPlatform
import LarderRESP
import Synchronization

/// CLIENT and its subcommands, except those for client-side caching.
extension CommandTable {
    static let clientCommands: Handlers = [
        .clientID: { call in call.reply(call.session.id) },
        .clientGetname: { call in
            let name = call.session.name
            if name.isEmpty { call.session.replies.null() } else { call.session.replies.bulk(name) }
            return .done
        },
        .clientSetname: { call throws(CommandError) in
            call.session.name = try clientName(call, 2)
            return call.ok()
        },
        .clientSetinfo: setinfo,
        .clientCapa: { call in
            for index in 2..<call.count where call.isWord(index, "ATTRIBUTES") {
                call.session.modes.takesAttributes = true
            }
            return call.ok()
        },
        .clientInfo: info,
        .clientList: list,
        .clientKill: kill,
        .clientReply: reply,
        .clientPause: pause,
        .clientUnpause: unpause,
        .clientNoEvict: { call throws(CommandError) in try setFlag(call, call.session.record.isNoEvict) },
        .clientNoTouch: { call throws(CommandError) in try setFlag(call, call.session.record.isNoTouch) },
        .clientNoLog: { call throws(CommandError) in try setFlag(call, call.session.record.isUnlogged) },
        .clientUnblock: unblock,
    ]

    // MARK: Names

    @Sendable private static func setinfo(_ call: inout Call) throws(CommandError) -> Outcome {
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
    static func clientName(_ call: Call, _ index: Int) throws(CommandError) -> String {
        guard isPlain(call.bytes(index)) else {
            throw CommandError("ERR Client names cannot contain spaces, newlines or special characters.")
        }
        return call.text(index)
    }

    private static func isPlain(_ bytes: UnsafeRawBufferPointer) -> Bool {
        bytes.count <= Limits.clientNameBytesMax && bytes.allSatisfy { $0 >= 0x21 && $0 <= 0x7E }
    }

    // MARK: Information about connections

    @Sendable private static func info(_ call: inout Call) throws(CommandError) -> Outcome {
        call.session.noteRecord()
        call.session.replies.verbatim(call.session.record.line(now: call.now) + "\n")
        return .done
    }

    @Sendable private static func list(_ call: inout Call) throws(CommandError) -> Outcome {
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

    @Sendable private static func kill(_ call: inout Call) throws(CommandError) -> Outcome {
        let own = call.session.id
        let isOldForm = call.count == 3
        let address = call.text(2)
        let matches: (ClientRecord) -> Bool = try isOldForm ? { $0.address == address } : readFilter(call)
        var killed = 0
        var isOwnKilled = false
        for record in call.server.clientRegistry.all where matches(record) {
            killed += 1
            // If this is the client's own connection, close it only after the reply is sent.
            if record.id == own { isOwnKilled = true } else { record.close("CLIENT KILL from client \(own)") }
        }
        if isOldForm, killed == 0 { throw CommandError("ERR No such client") }
        if isOldForm { call.session.replies.simple("OK") } else { call.session.replies.integer(killed) }
        return isOwnKilled ? .close : .done
    }

    /// Returns whether a connection is one of those that the options of CLIENT KILL name. Of several options with the
    /// same name, the last applies.
    private static func readFilter(_ call: Call) throws(CommandError) -> (ClientRecord) -> Bool {
        var filters: [String: (ClientRecord) -> Bool] = [:]
        let own = call.session.id
        filters["skipme"] = { $0.id != own }
        var options = OptionReader(call, from: 2)
        while let name = options.next() {
            let index = try options.value()
            let text = call.text(index)
            switch name {
            case "id":
                guard let id = parseInteger(call.bytes(index)), id > 0 else {
                    throw CommandError("ERR client-id should be greater than 0")
                }
                filters[name] = { $0.id == id }
            case "type":
                let kind = try kind(call, index)
                filters[name] = { $0.kind == kind }
            // All connections use one socket, so both addresses of a connection are the same.
            case "addr", "laddr": filters[name] = { $0.address == text }
            case "user":
                guard text == "default" || call.server.access.isUser(text) else {
                    throw CommandError("ERR No such user '", shown(call.bytes(index), 128), "'")
                }
                filters[name] = { $0.known.user == text }
            case "skipme" where call.isWord(index, "YES"): filters[name] = { $0.id != own }
            case "skipme" where call.isWord(index, "NO"): filters[name] = nil
            default: throw .syntax
            }
        }
        return { [filters] record in filters.values.allSatisfy { $0(record) } }
    }

    @Sendable private static func unblock(_ call: inout Call) throws(CommandError) -> Outcome {
        guard call.count <= 4 else { throw .subcommand(call, of: "CLIENT") }
        if call.count == 4, !call.isWord(3, "TIMEOUT"), !call.isWord(3, "ERROR") {
            throw CommandError("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR")
        }
        _ = try call.integer(2)
        return call.reply(0)
    }

    // MARK: Behaviour of the connection

    @Sendable private static func reply(_ call: inout Call) throws(CommandError) -> Outcome {
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

    @Sendable private static func pause(_ call: inout Call) throws(CommandError) -> Outcome {
        var isForAll = true
        if call.count == 4 {
            guard call.isWord(3, "WRITE") || call.isWord(3, "ALL") else {
                throw CommandError("ERR CLIENT PAUSE mode must be WRITE or ALL")
            }
            isForAll = call.isWord(3, "ALL")
        } else if call.count > 4 {
            throw .subcommand(call, of: "CLIENT")
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

    @Sendable private static func unpause(_ call: inout Call) throws(CommandError) -> Outcome {
        call.server.pause.end()
        call.server.engine.holdExpiry(until: 0)
        call.server.noteAttention()
        return call.ok()
    }

    /// Sets a flag of the connection to ON or OFF.
    private static func setFlag(_ call: Call, _ flag: borrowing Atomic<Bool>) throws(CommandError) -> Outcome {
        guard call.isWord(2, "ON") || call.isWord(2, "OFF") else { throw .syntax }
        flag.store(call.isWord(2, "ON"), ordering: .relaxed)
        return call.ok()
    }
}
