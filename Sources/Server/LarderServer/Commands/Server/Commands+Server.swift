import LarderCommandCatalog
import LarderEngine
import LarderPlatform
import LarderRESP

extension CommandTable {
    static let serverCommands: Handlers = [
        .info: ServerCommands.info,
        .flushdb: { call throws(CommandError) in try ServerCommands.flush(&call, all: false) },
        .flushall: { call throws(CommandError) in try ServerCommands.flush(&call, all: true) },
        .shutdown: ServerCommands.shutdown,
    ]
}

enum ServerCommands {
    static func flush(_ call: inout Call, all: Bool) throws(CommandError) -> Outcome {
        guard call.count <= 2 else { throw .syntax }
        if call.count == 2, !call.isWord(1, "ASYNC"), !call.isWord(1, "SYNC") { throw .syntax }
        let (server, engine, notifier) = (call.server, call.server.engine, call.server.notifier)
        let current = call.database
        let lines = call.server.purgeLines
        let line = "\(call.session.logName) ran " + (all ? "FLUSHALL" : "FLUSHDB in database '\(current.name)'")
        return .deferred { (reply) throws(CommandError) in
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
            reply.simple("OK")
            return nil
        }
    }

    @Sendable static func info(_ call: inout Call) throws(CommandError) -> Outcome {
        var sections: [String] = []
        for index in 1..<max(1, call.count) { sections.append(call.text(index).lowercased()) }
        let server = call.server
        let asked = MonotonicClock.nanoseconds()
        let rights = call.session.rights.current
        return .deferred { [sections] (reply) throws(CommandError) in
            reply.verbatim(ServerInfo(server, asked: asked, rights: rights).text(sections))
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
}
