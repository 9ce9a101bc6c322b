import LarderBackup
import LarderEngine
import LarderPlatform
import LarderRESP

/// The command BACKUP.
enum BackupCommands {
    @Sendable static func backup(_ call: inout Call) throws(CommandError) -> Outcome {
        let (place, server) = (call.text(1), call.server)
        guard place.hasPrefix("/"), !place.utf8.contains(0) else {
            throw CommandError("ERR the backup directory must be an absolute path, such as /var/backups/larder")
        }
        let path = place.count > 1 && place.hasSuffix("/") ? String(place.dropLast()) : place
        guard !existing(path).hasPrefix(server.engine.directory + "/") else {
            throw CommandError(
                "ERR the backup directory must not be inside the larder (\(server.engine.directory))")
        }
        let client = call.session.logName
        return .deferred { (reply) throws(CommandError) in
            guard server.backups.begin() else { throw CommandError("ERR a backup is already running") }
            var time: Int64?
            defer { server.backups.end(time) }
            let begin = MonotonicClock.nanoseconds()
            let result = try write(to: path, server)
            time = server.engine.now() / 1000
            server.log.info(
                "\(client) ran BACKUP to \(result.path): \(result.bytes) bytes, \(result.newBytes) of them new")
            for warning in result.warnings { server.log.warning("backup to \(path): \(warning)") }
            reply.map(count: 6)
            reply.bulk("path")
            reply.bulk(result.path)
            for (name, number) in [("files", result.files), ("bytes", result.bytes), ("new-bytes", result.newBytes)] {
                reply.bulk(name)
                reply.integer(number)
            }
            reply.bulk("milliseconds")
            reply.integer((MonotonicClock.nanoseconds() - begin) / 1_000_000)
            reply.bulk("warnings")
            reply.array(count: result.warnings.count)
            for warning in result.warnings { reply.bulk(warning) }
            return nil
        }
    }

    /// Returns the longest existing part of a path, with symbolic links resolved, and with a slash at the end.
    private static func existing(_ path: String) -> String {
        var path = path
        while true {
            if let found = FileSystem.canonical(path) { return found + "/" }
            path = FileSystem.parent(path)
        }
    }

    private static func write(to path: String, _ server: ServerState) throws(CommandError) -> BackupWriter.Result {
        do {
            return try server.engine.withImage(adding: [FunctionLibraries.fileName, OriginFile.fileName]) { image in
                try BackupWriter.write(image: image, to: path, time: server.engine.now() / 1000) {
                    server.backups.note(done: $0, total: $1)
                }
            }
        } catch {
            server.log.error("the backup to \(path) failed: \(error)")
            throw CommandError("ERR \(error)")
        }
    }
}
