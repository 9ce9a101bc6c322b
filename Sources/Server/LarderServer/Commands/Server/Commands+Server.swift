import LarderCommandCatalog
import LarderEngine
import LarderPlatform
import LarderRESP

extension CommandTable {
    static let serverCommands: Handlers = [
        .info: info,
        .flushdb: { call throws(CommandError) in try flush(&call, all: false) },
        .flushall: { call throws(CommandError) in try flush(&call, all: true) },
        .shutdown: shutdown,
        .configGet: get,
        .configSet: set,
        // Deferred, because it needs locks of the engine, some of which a running transaction may hold.
        .configResetstat: { call in
            .okLater { [server = call.server] () throws(CommandError) in server.resetStatistics() }
        },
        .configRewrite: rewrite,
    ]

    private static func flush(_ call: inout Call, all: Bool) throws(CommandError) -> Outcome {
        guard call.count <= 2 else { throw .syntax }
        if call.count == 2, !call.isWord(1, "ASYNC"), !call.isWord(1, "SYNC") { throw .syntax }
        let (server, engine, notifier) = (call.server, call.server.engine, call.server.notifier)
        let current = call.database
        let lines = call.server.purgeLines
        let line = "\(call.session.logName) ran " + (all ? "FLUSHALL" : "FLUSHDB in database '\(current.name)'")
        return .okLater { () throws(CommandError) in
            var failure: LarderError?
            // FLUSHALL keeps outboxes, because they have the only copies of the writes that are queued for origins.
            let databases = all ? engine.databases.filter { !DatabaseName.isKept($0.name) } : [current]
            notifier.notifyOnce(of: databases, isForAll: true) {
                for database in databases {
                    // If a database cannot be purged, continue with the next one, and report the first error.
                    do throws(LarderError) { _ = try server.purge(database, .all(counting: false)) } catch {
                        failure = failure ?? error
                    }
                }
            }
            // Also end the leases in databases that have no files.
            if all { engine.endAllLeases() }
            lines.add(failure == nil ? .info : .error, line + (failure.map { " and got an error: \($0)" } ?? ""))
            if let failure { throw CommandError(failure) }
        }
    }

    @Sendable private static func info(_ call: inout Call) throws(CommandError) -> Outcome {
        var sections: [String] = []
        for index in 1..<max(1, call.count) { sections.append(call.text(index).lowercased()) }
        let server = call.server
        let asked = MonotonicClock.nanoseconds()
        let rights = call.session.rights.current
        return .later { [sections] reply in
            reply.verbatim(ServerInfo(server, asked: asked, rights: rights).text(sections))
        }
    }

    @Sendable private static func shutdown(_ call: inout Call) throws(CommandError) -> Outcome {
        let words = Set((1..<max(1, call.count)).map { call.text($0).uppercased() })
        guard words.isSubset(of: ["NOSAVE", "SAVE", "NOW", "FORCE"]), !words.isSuperset(of: ["NOSAVE", "SAVE"]) else {
            throw .syntax
        }
        call.server.requestStop("SHUTDOWN from client \(call.session.id)")
        return .close
    }

    // MARK: CONFIG

    @Sendable private static func get(_ call: inout Call) throws(CommandError) -> Outcome {
        // As in Redis, the reply contains the name as the client has written it, for example in capitals.
        var found: [(name: String, setting: Setting)] = []
        var seen: Set<String> = []
        for index in 2..<call.count {
            let text = call.text(index)
            if let setting = Setting.find(text) {
                if seen.insert(setting.name).inserted { found.append((text, setting)) }
                continue
            }
            let pattern = GlobPattern(Array(text.lowercased().utf8))
            for setting in Setting.all where pattern.matches(Array(setting.name.utf8)) {
                if seen.insert(setting.name).inserted { found.append((setting.name, setting)) }
            }
        }
        let server = call.server
        // Defer the work: reading some settings needs locks of the engine, which a running transaction may hold.
        return .later { [found] reply in
            reply.map(count: found.count)
            for (name, setting) in found { reply.field(name, setting.get(server)) }
        }
    }

    @Sendable private static func set(_ call: inout Call) throws(CommandError) -> Outcome {
        guard call.count % 2 == 0 else { throw .syntax }
        var changes: [@Sendable (ServerState) -> Void] = []
        var seen: Set<String> = []
        var named: [(name: String, text: String, setting: Setting)] = []
        var fixed: [(name: String, text: String, setting: Setting)] = []
        for index in stride(from: 2, to: call.count, by: 2) {
            let name = call.text(index)
            guard let setting = Setting.find(name) else {
                throw CommandError(
                    "ERR Unknown option or number of arguments for CONFIG SET - '", shown(call.bytes(index), 128), "'")
            }
            guard seen.insert(Setting.key(setting)).inserted else { throw failure(name, "duplicate parameter") }
            named.append((name, call.text(index + 1), setting))
        }
        for (name, text, setting) in named {
            switch setting.change {
            case .never: throw failure(name, Setting.immutable)
            case .currentValueOnly: fixed.append((name, text, setting))
            case .protected: throw failure(name, "can't set protected config")
            case .checked(let check):
                switch check(call.server, text) {
                case .success(let change): changes.append(change)
                case .failure(let problem): throw failure(name, problem.message)
                }
            }
        }
        let server = call.server
        return .okLater { [changes, fixed] () throws(CommandError) in
            for (name, text, setting) in fixed where setting.get(server) != text {
                throw failure(name, Setting.immutable)
            }
            for change in changes { change(server) }
        }
    }

    private static func failure(_ name: String, _ text: String) -> CommandError {
        CommandError(
            "ERR CONFIG SET failed (possibly related to argument '", Array(name.utf8.prefix(128)), "') - ",
            Array(text.utf8))
    }

    @Sendable private static func rewrite(_ call: inout Call) throws(CommandError) -> Outcome {
        guard !call.server.configurationPath.isEmpty else {
            throw CommandError("ERR The server is running without a config file")
        }
        throw CommandError("ERR Rewriting config file: larderd never writes it")
    }
}
