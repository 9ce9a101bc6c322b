import LarderBackup
import LarderEngine
import LarderPlatform
import LarderRESP

/// BACKUP and CHECK, which use the larder's files.
extension CommandTable {
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
        return .later { (reply) throws(CommandError) in
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
            reply.field("path", result.path)
            reply.field("files", result.files)
            reply.field("bytes", result.bytes)
            reply.field("new-bytes", result.newBytes)
            reply.field("milliseconds", (MonotonicClock.nanoseconds() - begin) / 1_000_000)
            reply.field("warnings", result.warnings)
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

    // MARK: CHECK

    @Sendable static func check(_ call: inout Call) throws(CommandError) -> Outcome {
        let server = call.server
        var (name, repairs): (String?, Bool) = (nil, false)
        var options = OptionReader(call, from: 1)
        while let option = options.next() {
            switch option {
            case "repair": repairs = true
            case "database": name = call.text(try options.value())
            default: throw .syntax
            }
        }
        return .later { [name, repairs] (reply) throws(CommandError) in
            guard server.checks.begin() else { throw CommandError("ERR a check is already running") }
            var time: Int64?
            defer { server.checks.end(time) }
            let begin = MonotonicClock.nanoseconds()
            let found = try look(name, server)
            var failures: [String] = []
            var left = found.problems
            if repairs, found.isRepairable {
                failures = server.engine.repair(found)
                left = try look(name, server).problems
            }
            time = server.engine.now() / 1000
            for problem in found.problems { server.log.warning("check: \(problem.text)") }
            write(found, left, failures, MonotonicClock.nanoseconds() - begin, to: &reply)
        }
    }

    private static func look(_ name: String?, _ server: ServerState) throws(CommandError) -> CheckReport {
        do {
            return try server.engine.check(
                database: name, copying: LarderFiles.names, adding: LarderFiles.check
            ) { server.checks.note(done: $0, total: $1) }
        } catch let error as LarderError where error.code == .noSuchDatabase {
            throw CommandError("ERR \(error.message)")
        } catch {
            server.log.error("the check failed: \(error)")
            let error = error as? LarderError ?? LarderError(.io, "\(error)", operation: "check", underlying: error)
            let isFull = (error.underlying as? FileError)?.isFullDisk ?? false
            throw CommandError(
                "UNCHECKED the larder could not be checked: \(error.message)"
                    + (isFull ? ", or stop the daemon: without a daemon, larderctl check needs no copy" : ""))
        }
    }

    private static func write(
        _ found: CheckReport, _ left: [CheckProblem], _ failures: [String], _ nanoseconds: Int64,
        to reply: inout ReplyBuffer
    ) {
        reply.map(count: 8)
        for (name, problems) in [("problems", found.problems), ("left", left)] {
            reply.bulk(name)
            reply.array(count: problems.count)
            for problem in problems {
                reply.map(count: 4)
                reply.field("kind", problem.kind.rawValue)
                reply.field("place", problem.place)
                reply.field("what", problem.what)
                reply.field("remedy", problem.remedy)
            }
        }
        reply.field("notes", found.notes)
        reply.field("failures", failures)
        reply.field("databases", found.databases)
        reply.field("entries", found.entries)
        reply.field("operations", found.operations)
        reply.field("milliseconds", nanoseconds / 1_000_000)
    }
}

/// The files in a larder's directory that only the daemon uses, not the engine.
package enum LarderFiles {
    static let names = [FunctionLibraries.fileName, OriginFile.fileName]

    /// Checks these files in a larder's directory, and changes nothing. No process may write to the files meanwhile.
    package static func check(_ directory: String, _ report: inout CheckReport) {
        FunctionLibraries.check(directory, &report)
        OriginFile.check(directory, &report)
    }
}

extension OriginFile {
    fileprivate static func check(_ directory: String, _ report: inout CheckReport) {
        do {
            guard let bytes = try FileSystem.read(directory + "/" + fileName, bytesMax: fileBytesMax) else { return }
            guard (try? OriginFile(parsing: bytes)) == nil else { return }
            report.addDamage(
                fileName,
                "its checksum or its format is wrong, so after the next start the daemon refuses all commands of all "
                    + "databases",
                "restore it, or remove it and set the origins again; first check the queued writes in the databases *"
                    + "\(DatabaseName.outboxEnding): they will be delivered to the new origin")
        } catch {
            report.addUnseen(fileName, error)
        }
    }
}

extension FunctionLibraries {
    /// Checks the file of function libraries in a larder's directory. No process may write to it. Changes nothing.
    fileprivate static func check(_ directory: String, _ report: inout CheckReport) {
        let path = directory + "/" + fileName
        do {
            guard let payload = try FileSystem.read(path, bytesMax: fileBytesMax) else { return }
            guard (try? texts(of: payload, bytesMax: fileBytesMax)) == nil else { return }
            report.addDamage(
                fileName, "its checksum or its format is wrong, so functions are not loaded",
                "at the next start, the daemon renames it to \(fileName).damaged-<time>; load the libraries again (FUNCTION "
                    + "LOAD)")
        } catch {
            report.addUnseen(fileName, error)
        }
    }
}
