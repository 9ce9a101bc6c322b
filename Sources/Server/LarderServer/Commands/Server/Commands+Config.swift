import LarderCommandCatalog
import LarderEngine
import LarderRESP

extension CommandTable {
    static let configCommands: Handlers = [
        .configGet: ConfigCommands.get,
        .configSet: ConfigCommands.set,
        .configResetstat: ConfigCommands.resetstat,
        .configRewrite: ConfigCommands.rewrite,
    ]
}

enum ConfigCommands {
    @Sendable static func get(_ call: inout Call) throws(CommandError) -> Outcome {
        // As in Redis, the reply contains the name as the client has written it, for example in capitals.
        var found: [(name: String, setting: Setting)] = []
        var seen: Set<String> = []
        for index in 2..<call.count {
            let text = call.text(index)
            if let setting = SettingsTable.find(text) {
                if seen.insert(setting.name).inserted { found.append((text, setting)) }
                continue
            }
            let pattern = GlobPattern(Array(text.lowercased().utf8))
            for setting in SettingsTable.all where pattern.matches(Array(setting.name.utf8)) {
                if seen.insert(setting.name).inserted { found.append((setting.name, setting)) }
            }
        }
        let server = call.server
        // Defer the work: reading some settings needs locks of the engine, which a running transaction may hold.
        return .deferred { [found] (reply) throws(CommandError) in
            reply.map(count: found.count)
            for (name, setting) in found {
                reply.bulk(name)
                reply.bulk(setting.get(server))
            }
            return nil
        }
    }

    @Sendable static func set(_ call: inout Call) throws(CommandError) -> Outcome {
        guard call.count % 2 == 0 else { throw .syntax }
        var changes: [@Sendable (ServerState) -> Void] = []
        var seen: Set<String> = []
        var named: [(name: String, text: String, setting: Setting)] = []
        var fixed: [(name: String, text: String, setting: Setting)] = []
        for index in stride(from: 2, to: call.count, by: 2) {
            let name = call.text(index)
            guard let setting = SettingsTable.find(name) else {
                throw CommandError(
                    "ERR Unknown option or number of arguments for CONFIG SET - '", shown(call.bytes(index), 128), "'")
            }
            guard seen.insert(SettingsTable.key(setting)).inserted else { throw failure(name, "duplicate parameter") }
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
                case .failure(let problem): throw failure(name, problem.text)
                }
            }
        }
        let server = call.server
        return .deferred { [changes, fixed] (reply) throws(CommandError) in
            for (name, text, setting) in fixed where setting.get(server) != text {
                throw failure(name, Setting.immutable)
            }
            for change in changes { change(server) }
            reply.simple("OK")
            return nil
        }
    }

    private static func failure(_ name: String, _ text: String) -> CommandError {
        CommandError(
            "ERR CONFIG SET failed (possibly related to argument '", Array(name.utf8.prefix(128)), "') - ",
            Array(text.utf8))
    }

    @Sendable static func resetstat(_ call: inout Call) throws(CommandError) -> Outcome {
        // Defer the work: it needs locks of the engine, some of which a running transaction may hold.
        .deferred { [server = call.server] (reply) throws(CommandError) in
            server.resetStatistics()
            reply.simple("OK")
            return nil
        }
    }

    @Sendable static func rewrite(_ call: inout Call) throws(CommandError) -> Outcome {
        guard !call.server.configurationPath.isEmpty else {
            throw CommandError("ERR The server is running without a config file")
        }
        throw CommandError("ERR Rewriting config file: larderd never writes it")
    }
}
