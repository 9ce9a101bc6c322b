import LarderEngine
import RESP

extension CommandTable {
    static let serverCommands: [CommandSpec] = [
        CommandSpec(
            "command", arity: -1, [.loading, .stale], group: "server", since: "2.8.13",
            complexity: "O(N) with N the commands", syntax: "[COUNT | LIST | INFO [name ...] | DOCS [name ...] | HELP]",
            summary: "Tells about the commands.", reply: "array or map as in Redis", run: ServerCommands.command),
        CommandSpec(
            "info", arity: -1, [.loading, .stale], group: "server", since: "1.0.0",
            complexity: "O(1); counting entries may be O(N), at most once a minute", syntax: "[section ...]",
            summary: "Tells about the daemon, in Redis' form.", reply: "text", run: ServerCommands.info),
        flush("flushdb", "Empties the current database at once; its policy stays."),
        flush("flushall", "Empties every database at once, one after the other; their policies stay."),
        CommandSpec(
            "shutdown", arity: -1, [.admin, .loading, .stale, .noScript, .allowBusy, .noMulti], group: "server",
            since: "1.0.0", complexity: "O(1)",
            syntax: "[NOSAVE | SAVE] [NOW] [FORCE]",
            summary: "Ends the daemon: what was read is finished, everything is committed and synced.",
            reply: "none: the connection closes", run: ServerCommands.shutdown),
    ]

    private static func flush(_ name: String, _ summary: String) -> CommandSpec {
        CommandSpec(
            name, arity: -1, [.write, .wholeDatabase], group: "server", since: "1.0.0", complexity: "O(1)",
            syntax: "[ASYNC | SYNC]",
            summary: summary, reply: "OK"
        ) { call throws(CommandError) in try ServerCommands.flush(&call, all: name == "flushall") }
    }
}

enum ServerCommands {
    static func flush(_ call: inout Call, all: Bool) throws(CommandError) -> Outcome {
        guard call.count <= 2 else { throw .syntax }
        if call.count == 2, !call.isWord(1, "ASYNC"), !call.isWord(1, "SYNC") { throw .syntax }
        let engine = call.server.engine
        let current = call.database
        return .deferred { (reply) throws(CommandError) in
            var failure: LarderError?
            for database in all ? engine.databases : [current] {
                // One that cannot be emptied does not save the others.
                do throws(LarderError) { _ = try database.purge(counting: false) } catch { failure = failure ?? error }
            }
            if let failure { throw CommandError(failure) }
            reply.simple("OK")
            return nil
        }
    }

    @Sendable static func info(_ call: inout Call) throws(CommandError) -> Outcome {
        var sections: [String] = []
        for index in 1..<max(1, call.count) { sections.append(call.text(index).lowercased()) }
        let server = call.server
        return .deferred { [sections] (reply) throws(CommandError) in
            reply.verbatim(ServerInfo(server).text(sections))
            return nil
        }
    }

    @Sendable static func shutdown(_ call: inout Call) throws(CommandError) -> Outcome {
        for index in 1..<max(1, call.count) {
            let isKnown =
                call.isWord(index, "NOSAVE") || call.isWord(index, "SAVE") || call.isWord(index, "NOW")
                || call.isWord(index, "FORCE")
            guard isKnown else { throw .syntax }
        }
        call.server.requestStop("SHUTDOWN from client \(call.session.id)")
        return .close
    }

    // MARK: COMMAND

    @Sendable static func command(_ call: inout Call) throws(CommandError) -> Outcome {
        if call.count == 1 {
            list(CommandTable.all, call.session)
        } else if call.isWord(1, "COUNT") {
            guard call.count == 2 else { throw .arity("command|count") }
            call.session.replies.integer(CommandTable.all.count)
        } else if call.isWord(1, "LIST") {
            guard call.count == 2 else { throw .syntax }
            call.session.replies.array(count: CommandTable.all.count)
            for spec in CommandTable.all { call.session.replies.bulk(spec.name) }
        } else if call.isWord(1, "INFO") {
            list(named(call), call.session)
        } else if call.isWord(1, "DOCS") {
            docs(named(call).compactMap { $0 }, call.session)
        } else if call.isWord(1, "HELP") {
            call.help("COMMAND")
        } else {
            throw .unknownSubcommand(call, "COMMAND")
        }
        return .done
    }

    /// The commands named from the third word on, all where there is none; nil for a name that is unknown.
    private static func named(_ call: Call) -> [CommandSpec?] {
        guard call.count > 2 else { return CommandTable.all }
        return (2..<call.count).map { CommandTable.find(call.bytes($0)) }
    }

    private static func list(_ specs: [CommandSpec?], _ session: Session) {
        session.replies.array(count: specs.count)
        for spec in specs {
            guard let spec else {
                session.replies.null()
                continue
            }
            // Redis 7 has ten fields; the last four describe what Larder's commands do not have.
            session.replies.array(count: 10)
            session.replies.bulk(spec.name)
            session.replies.integer(spec.arity)
            session.replies.set(count: spec.flags.names.count)
            for flag in spec.flags.names { session.replies.simple(flag) }
            session.replies.integer(spec.keys.first)
            session.replies.integer(spec.keys.last)
            session.replies.integer(spec.keys.step)
            session.replies.set(count: 0)
            session.replies.array(count: 0)
            session.replies.array(count: 0)
            session.replies.array(count: 0)
        }
    }

    private static func docs(_ specs: [CommandSpec], _ session: Session) {
        session.replies.map(count: specs.count)
        for spec in specs {
            session.replies.bulk(spec.name)
            session.replies.map(count: 7)
            let fields = [
                ("summary", spec.summary), ("since", spec.since), ("group", spec.group),
                ("complexity", spec.complexity), ("syntax", spec.syntax), ("reply", spec.reply),
            ]
            for (name, value) in fields {
                session.replies.bulk(name)
                session.replies.bulk(value)
            }
            arguments(spec, session)
        }
    }

    /// The syntax once more, as the one argument that makes redis-cli's help show it.
    private static func arguments(_ spec: CommandSpec, _ session: Session) {
        session.replies.bulk("arguments")
        guard !spec.syntax.isEmpty else { return session.replies.array(count: 0) }
        session.replies.array(count: 1)
        session.replies.map(count: 2)
        session.replies.bulk("name")
        session.replies.bulk(spec.syntax)
        session.replies.bulk("type")
        session.replies.bulk("string")
    }
}
