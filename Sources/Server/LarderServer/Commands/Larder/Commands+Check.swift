import LarderEngine
import LarderPlatform
import LarderRESP

/// The command CHECK.
enum CheckCommands {
    @Sendable static func check(_ call: inout Call) throws(CommandError) -> Outcome {
        let server = call.server
        var (name, repairs): (String?, Bool) = (nil, false)
        var index = 1
        while index < call.count {
            switch call.text(index).uppercased() {
            case "REPAIR": repairs = true
            case "DATABASE" where index + 1 < call.count:
                index += 1
                name = call.text(index)
            default: throw .syntax
            }
            index += 1
        }
        return .deferred { [name, repairs] (reply) throws(CommandError) in
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
            return nil
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
                let fields = [
                    ("kind", problem.kind.rawValue), ("place", problem.place), ("what", problem.what),
                    ("remedy", problem.remedy),
                ]
                for (name, text) in fields {
                    reply.bulk(name)
                    reply.bulk(text)
                }
            }
        }
        for (name, texts) in [("notes", found.notes), ("failures", failures)] {
            reply.bulk(name)
            reply.array(count: texts.count)
            for text in texts { reply.bulk(text) }
        }
        let numbers = [
            ("databases", Int64(found.databases)), ("entries", Int64(found.entries)),
            ("operations", Int64(found.operations)), ("milliseconds", nanoseconds / 1_000_000),
        ]
        for (name, number) in numbers {
            reply.bulk(name)
            reply.integer(number)
        }
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
