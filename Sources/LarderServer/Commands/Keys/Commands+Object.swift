import LarderEngine
import RESP

/// What Redis' tools ask about the memory of entries, as far as it means something here.
extension CommandTable {
    static let objectCommands: [CommandSpec] = [
        CommandSpec(
            "object", arity: -2, .readonly, keys: .second, group: "generic", since: "2.2.3", complexity: "O(1)",
            syntax: "ENCODING key | FREQ key | IDLETIME key | REFCOUNT key | HELP",
            summary: "Tells about an entry what Redis would: the encoding its bytes would have there, and the seconds "
                + "since it was stored, for there is no note of reads.",
            reply:
                "ENCODING: bulk; IDLETIME, REFCOUNT: integer; FREQ: an error as in Redis without LFU; null when there "
                + "is no fresh entry; HELP: array",
            subcommands: [
                row("object|encoding", "How Redis would keep the value: `int`, `embstr` or `raw`.", "bulk or null"),
                row("object|freq", "An error where there is an entry: there is no note of use.", "error or null"),
                row("object|idletime", "The seconds since the value was stored.", "integer or null"),
                row(
                    "object|refcount", "What Redis would say: 2147483647 for small numbers, else 1.", "integer or null"),
                .help("object", since: "6.2.0"),
            ]),
        CommandSpec(
            "memory", arity: -2, .readonly, keys: .second, group: "server", since: "4.0.0", complexity: "O(1)",
            syntax: "USAGE key [SAMPLES count] | STATS | DOCTOR | PURGE | MALLOC-STATS | HELP",
            summary: "Tells how much memory an entry takes while it is in memory, and about the daemon's memory; PURGE "
                + "gives the system back what is free.",
            reply: "USAGE: integer, null when there is no fresh entry; STATS: map; PURGE: OK; the others: text",
            subcommands: [
                row(
                    "memory|usage", arity: -3, syntax: "key [SAMPLES count]",
                    "The bytes that the entry takes while it is in memory.", "integer or null"),
                row("memory|stats", "The memory of all entries, and its bound.", "map"),
                row("memory|doctor", "The same as a sentence.", "text"),
                row("memory|purge", "Gives the system back what is free.", "OK"),
                row("memory|malloc-stats", "Nothing yet.", "text"),
                .help("memory", since: "4.0.0"),
            ]),
    ]

    /// - Parameter syntax: of a command that has a key, other than that key alone.
    private static func row(
        _ name: String, arity: Int? = nil, syntax: String? = nil, _ summary: String, _ reply: String
    ) -> CommandSpec {
        let isObject = name.hasPrefix("object")
        let hasKey = isObject || syntax != nil
        return CommandSpec(
            name, arity: arity ?? (hasKey ? 3 : 2), hasKey ? .readonly : [], keys: hasKey ? .second : .none,
            group: isObject ? "generic" : "server", since: isObject && name != "object|freq" ? "2.2.3" : "4.0.0",
            complexity: "O(1)",
            syntax: syntax ?? (hasKey ? "key" : ""), summary: summary, reply: reply,
            run: isObject ? ObjectCommands.object : ObjectCommands.memory)
    }
}

enum ObjectCommands {
    @Sendable static func object(_ call: inout Call) throws(CommandError) -> Outcome {
        if call.isWord(1, "HELP") {
            guard call.count == 2 else { throw .arity("object|help") }
            call.help("OBJECT")
            return .done
        }
        let subcommand = call.text(1).lowercased()
        guard ["encoding", "freq", "idletime", "refcount"].contains(subcommand) else {
            throw .unknownSubcommand(call, "OBJECT")
        }
        guard call.count == 3 else { throw .arity("object|\(subcommand)") }
        var found: (encoding: String, storedAt: Int64, isShared: Bool)?
        try call.read(2) { header, payload in
            let integer = parseInteger(payload)
            let isShared = integer.map { (0..<10_000).contains($0) } ?? false
            found = (encoding(payload, integer), header.storedAt, isShared)
        }
        guard let found else {
            call.session.replies.null()
            return .done
        }
        switch subcommand {
        case "encoding": call.session.replies.bulk(found.encoding)
        case "idletime": call.session.replies.integer(max(0, call.now - found.storedAt) / 1000)
        // Redis keeps one object for each small number, and says so with the greatest count.
        case "refcount": call.session.replies.integer(found.isShared ? Int(Int32.max) : 1)
        default:
            throw CommandError(
                "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when "
                    + "switching between policies at runtime LRU and LFU data will take some time to adjust.")
        }
        return .done
    }

    private static func encoding(_ payload: UnsafeRawBufferPointer, _ integer: Int64?) -> String {
        if integer != nil { return "int" }
        return payload.count <= 44 ? "embstr" : "raw"
    }

    // MARK: MEMORY

    @Sendable static func memory(_ call: inout Call) throws(CommandError) -> Outcome {
        if call.isWord(1, "USAGE") { return try usage(&call) }
        let subcommand = call.text(1).lowercased()
        guard ["stats", "doctor", "purge", "malloc-stats", "help"].contains(subcommand) else {
            throw .unknownSubcommand(call, "MEMORY")
        }
        guard call.count == 2 else { throw .arity("memory|\(subcommand)") }
        let server = call.server
        switch subcommand {
        case "help": call.help("MEMORY")
        case "stats":
            return .deferred { (reply) throws(CommandError) in
                stats(server, &reply)
                return nil
            }
        case "doctor":
            return .deferred { (reply) throws(CommandError) in
                let (used, limit) = (server.engine.memory.usedBytes, server.engine.memory.limitBytes)
                reply.verbatim(
                    "Entries take \(used) of the \(limit) bytes that they may (--memory). What is beyond is on the disk."
                )
                return nil
            }
        case "purge":
            return .deferred { (reply) throws(CommandError) in
                Allocator.giveBack()
                reply.simple("OK")
                return nil
            }
        default: call.session.replies.verbatim("Stats not supported for the current allocator")
        }
        return .done
    }

    private static func usage(_ call: inout Call) throws(CommandError) -> Outcome {
        guard call.count >= 3 else { throw .arity("memory|usage") }
        var index = 3
        while index < call.count {
            guard call.isWord(index, "SAMPLES"), index + 1 < call.count, try call.integer(index + 1) >= 0 else {
                throw .syntax
            }
            index += 2
        }
        if let facts = try call.facts(2) {
            let bytes = call.bytes(2).count + facts.header.byteCount + facts.payloadCount
            call.session.replies.integer(Limits.entryOverheadBytes + (bytes + 15) / 16 * 16)
        } else {
            call.session.replies.null()
        }
        return .done
    }

    private static func stats(_ server: ServerState, _ reply: inout ReplyBuffer) {
        let memory = server.engine.memory
        let fields: [(String, Int)] = [
            ("entries.bytes", memory.usedBytes), ("entries.limit", memory.limitBytes),
            ("clients", server.clients.read()), ("databases", server.engine.databases.count),
        ]
        reply.map(count: fields.count)
        for (name, value) in fields {
            reply.bulk(name)
            reply.integer(value)
        }
    }
}
