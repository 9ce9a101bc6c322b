import LarderEngine
import LarderPlatform
import LarderServer

/// `larderd --check`: checks the files of a larder that no daemon has open.
enum Check {
    static func run(_ name: String?, _ options: DaemonCommandLine) -> Int32 {
        let directory = options.configuration.directory
        guard FileSystem.isDirectory(directory) else {
            Daemon.complain("there is no larder at \(directory): nothing to check (--dir)")
            return ExitCode.usage
        }
        do throws(LarderError) {
            let found = try look(directory, name)
            guard options.repairs, found.isRepairable else {
                show(found, left: found.problems, [], options)
                return code(found, left: found.problems)
            }
            let failures = try Engine.repair(directory, found, options: options.configuration.engine)
            let left = try look(directory, name).problems
            show(found, left: left, failures, options)
            return code(found, left: left)
        } catch {
            Daemon.complain(error.message + (error.code == .larderHeld ? "; use larderctl check" : ""))
            return switch error.code {
            case .larderHeld: ExitCode.held
            case .noSuchDatabase: ExitCode.noDatabase
            case .invalidArgument: ExitCode.usage
            default: ExitCode.blind
            }
        }
    }

    private static func look(_ directory: String, _ name: String?) throws(LarderError) -> CheckReport {
        let line = PercentLine()
        defer { line.end() }
        return try Engine.check(
            directory, database: name, adding: LarderFiles.check,
            onProgress: { line.show($0, of: $1) })
    }

    private static func code(_ found: CheckReport, left: [CheckProblem]) -> Int32 {
        if found.problems.isEmpty { return ExitCode.done }
        if left.isEmpty { return ExitCode.repaired }
        return left.allSatisfy { $0.kind == .unseen } ? ExitCode.blind : ExitCode.wrong
    }

    // MARK: Output

    private static func show(
        _ found: CheckReport, left: [CheckProblem], _ failures: [String], _ options: DaemonCommandLine
    ) {
        for failure in failures { Daemon.complain(failure) }
        if options.logFormat == .json { return Output.write(json(found, left: left, failures)) }
        for problem in found.problems { Output.write(LogFormat.clean(problem.text) + "\n") }
        for note in found.notes { Output.write("note: " + LogFormat.clean(note) + "\n") }
        if found.problems.isEmpty {
            Output.write(
                "no problems: \(counted(found.databases, "database")), "
                    + "\(counted(found.entries, "entry", "entries")) in the files, "
                    + "\(counted(found.operations, "operation")) in the journal\n")
        } else if options.repairs {
            Output.write(left.isEmpty ? "repaired: no problems left\n" : "after the repair:\n")
            for problem in left { Output.write("  " + LogFormat.clean(problem.text) + "\n") }
        }
    }

    private static func json(_ found: CheckReport, left: [CheckProblem], _ failures: [String]) -> String {
        func text(_ text: String) -> String { "\"\(LogFormat.escaped(text))\"" }
        func list(_ items: [String]) -> String { "[" + items.joined(separator: ",") + "]" }
        func problems(_ problems: [CheckProblem]) -> String {
            list(
                problems.map {
                    "{\"kind\":\(text($0.kind.rawValue)),\"place\":\(text($0.place)),\"what\":\(text($0.what)),"
                        + "\"remedy\":\(text($0.remedy))}"
                })
        }
        return "{\"problems\":\(problems(found.problems)),\"left\":\(problems(left)),"
            + "\"notes\":\(list(found.notes.map(text))),\"failures\":\(list(failures.map(text))),"
            + "\"databases\":\(found.databases),\"entries\":\(found.entries),\"operations\":\(found.operations)}\n"
    }
}

/// Shows the progress of a check in percent on standard error, if that is a terminal.
final class PercentLine {
    private let isShown = isatty(STDERR_FILENO) == 1
    private var last = -1

    func show(_ done: Int, of total: Int) {
        let percent = total > 0 ? Int(Double(done) / Double(total) * 100) : 0
        guard isShown, percent != last else { return }
        last = percent
        put("\rchecking: \(percent) %")
    }

    func end() { if last >= 0 { put("\r                  \r") } }

    private func put(_ text: String) {
        let bytes = Array(text.utf8)
        _ = write(STDERR_FILENO, bytes, bytes.count)
    }
}
