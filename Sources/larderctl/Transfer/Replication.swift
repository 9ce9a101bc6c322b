import LarderClient
import LarderPlatform

/// Replicates the databases of one larder to another one, with a ``LarderFollower`` for each database.
struct Replication: Sendable {
    // The connection options of the two daemons.
    var from: Options
    var to: Options
    let choice: ReplicationOptions

    /// How long a request waits for a change, in milliseconds: less than ``Options/connectForTransfer()`` waits.
    private static let waitMilliseconds = 10_000
    /// How often new databases are looked for, in milliseconds.
    private static let lookMilliseconds: Int64 = 5_000
    private static let backOffMillisecondsMax: Int64 = 10_000

    private typealias Clients = (from: BlockingLarderClient, to: BlockingLarderClient)

    private func connect() throws -> Clients {
        var (from, to) = (self.from, self.to)
        (from.database, to.database) = (nil, nil)
        return (try from.connectForTransfer(), try to.connectForTransfer())
    }

    private func makeFollower(_ clients: Clients, _ database: String) throws -> LarderFollower {
        var choice = choice
        choice.database = database
        return try LarderFollower(from: clients.from, to: clients.to, choice)
    }

    /// Returns the databases to replicate.
    /// - Parameter mustExist: whether a database given by `--database` must exist. If false, it may be created later.
    private func databases(_ clients: Clients, mustExist: Bool) throws -> [String] {
        let known = try clients.from.databases().map(\.name).filter {
            $0 != LarderFollower.positionsDatabase && !CompanionName.isOne($0)
        }
        if from.databases.isEmpty { return known }
        // If the source no longer has a database, its entries at the target must be removed: accept its name too.
        let both = known + (try clients.to.databases().map(\.name))
        for name in from.databases where mustExist && !both.contains(name) {
            throw UsageError(
                "there is no database '\(printableKey(name.utf8))'" + Suggestion.text(for: name, among: known))
        }
        return from.databases
    }

    // MARK: Once

    /// Replicates all changes until the target is up to date. If a database fails, continues with the others.
    /// - Returns: `done`, or the exit code of the first failure.
    /// - Throws: if a larder is not available at the start, or a given database does not exist.
    func runOnce(_ context: Context) throws -> ExitCode {
        let clients = try connect()
        // Check the connections and the options even if there is no database.
        _ = try makeFollower(clients, "0")
        let progress = ProgressLine(.entries)
        defer { progress.end() }
        var (done, total) = (0, 0)
        var result = ExitCode.done
        for database in try databases(clients, mustExist: true) {
            var report = ReplicationReport(database: database, state: "idle", progress: ReplicationProgress())
            var failure: Failure?
            do {
                let follower = try makeFollower(clients, database)
                defer { report.progress = follower.progress }
                repeat {
                    try follower.step()
                    progress.show(done: done + follower.progress.done, total: total + follower.progress.total)
                } while follower.progress.state != .idle
            } catch {
                let cause = Failure(error)
                let message = "\(database): \(cause.message)"
                failure = Failure(code: cause.code, message: message, exitCode: cause.exitCode)
                (report.state, report.error) = ("error", message)
            }
            done += report.progress.done
            total += report.progress.total
            progress.end()
            context.show(report.json) { output in
                if failure == nil { output.line(report.text) }
            }
            try context.output.flush()
            guard let failure else { continue }
            failure.show(asJSON: context.options.json)
            if result == .done { result = failure.exitCode }
            if failure.exitCode == .noDaemon { break }
        }
        return result
    }

    // MARK: Continuously

    /// Replicates changes continuously, until a signal stops the program.
    func resume() throws -> Never {
        // Block the signals before other threads start, which inherit that.
        let signals = SignalSet([SIGINT, SIGTERM, SIGHUP])
        signals.block()
        // If a daemon is not available at the start, throw instead of retrying.
        let first = try connect()
        let watch = ReplicationWatch(asJSON: from.json)
        var running: Set<String> = []
        func start(_ names: [String]) {
            for name in names where running.insert(name).inserted {
                _ = WorkThread(name: "replicate") { follow(name, watch) }
            }
        }
        let names = try databases(first, mustExist: false)
        for name in names + ["0"] { _ = try makeFollower(first, name) }
        start(names)
        while true {
            if let signal = signals.wait(milliseconds: Self.lookMilliseconds) { watch.stop(by: signal) }
            if from.databases.isEmpty, let names = try? databases(first, mustExist: false) { start(names) }
            watch.showProgress()
        }
    }

    private func follow(_ database: String, _ watch: ReplicationWatch) {
        var follower: LarderFollower?
        var failures = 0
        var previous = ReplicationReport(database: database, state: "initial", progress: ReplicationProgress())
        while true {
            do {
                if follower == nil { follower = try makeFollower(connect(), database) }
                let state = try follower?.step(waitMilliseconds: previous.state == "idle" ? Self.waitMilliseconds : 0)
                failures = 0
                previous = ReplicationReport(
                    database: database, state: state?.rawValue ?? "initial",
                    progress: follower?.progress ?? previous.progress)
                watch.note(previous)
            } catch {
                let failure = Failure(error)
                (previous.state, previous.error) = ("error", failure.message)
                watch.note(previous, failure.exitCode)
                // The follower reconnects by itself. After an invalid argument, a new follower is needed.
                if case let error as LarderClientError = error, error.code == .invalidArgument { follower = nil }
                let rest = RetryBackoff.rest(after: failures, from: 250, to: Self.backOffMillisecondsMax, jitter: 0)
                _ = poll(nil, 0, Int32(clamping: rest))
                failures += 1
            }
        }
    }
}

/// The progress of a database's replication, to be printed.
struct ReplicationReport: Equatable {
    let database: String
    /// The follower's state, or `stopped`, or `error`.
    var state: String
    var progress: ReplicationProgress
    var error: String?

    var json: JSONText {
        .present([
            "time": Exporter.now(), "database": database, "state": state, "total": progress.total,
            "done": progress.done, "stored": progress.stored, "removed": progress.removed, "kept": progress.kept,
            "passes": progress.passes, "ever": progress.everDone, "error": error,
        ])
    }

    var text: String {
        let isNew = progress.done > 0 || progress.removed > 0
        var parts = isNew ? [counted(progress.done, "change"), "\(progress.stored) stored"] : ["nothing new"]
        if progress.removed > 0 { parts.append("\(progress.removed) removed") }
        if progress.kept > 0 { parts.append("\(progress.kept) not needed") }
        if progress.passes > 0 { parts.append("in a full pass") }
        return "\(database): " + parts.joined(separator: ", ")
    }
}

/// Prints the progress of the replications that run on several threads.
final class ReplicationWatch: Sendable {
    private struct State {
        let output = Output()
        let progress = ProgressLine(.entries)
        var reports: [String: ReplicationReport] = [:]
        /// The latest news about each database, and the time when they were printed.
        var printed: [String: (report: ReplicationReport, time: Int64)] = [:]

        func showProgress() {
            let all = reports.values.map(\.progress)
            progress.show(done: all.reduce(0) { $0 + $1.done }, total: all.reduce(0) { $0 + $1.total })
        }
    }

    private let asJSON: Bool
    private let state = Locked(State())

    /// Two reports about a database whose state is unchanged are at least this many milliseconds apart.
    private static let pauseMilliseconds: Int64 = 1_000

    init(asJSON: Bool) { self.asJSON = asJSON }

    /// - Parameter exitCode: the exit code to print with the report's error, if it has one.
    func note(_ report: ReplicationReport, _ exitCode: ExitCode = .done) {
        state.withLock { state in
            state.reports[report.database] = report
            let previous = state.printed[report.database]
            let isNews = previous?.report.state != report.state || previous?.report.error != report.error
            let now = MonotonicClock.milliseconds()
            if isNews, let error = report.error {
                state.progress.end()
                Failure(code: "replicate", message: "\(report.database): \(error); trying again", exitCode: exitCode)
                    .show(asJSON: asJSON)
            }
            let isDue = previous?.report != report && now - (previous?.time ?? 0) >= Self.pauseMilliseconds
            if isNews || isDue && asJSON {
                state.printed[report.database] = (report, now)
                if asJSON { state.output.json(report.json) }
                try? state.output.flush()
            }
            state.showProgress()
        }
    }

    func showProgress() { state.withLock { $0.showProgress() } }

    /// Reports that all replications have stopped, and terminates the program. Its next start resumes the replications.
    func stop(by signal: Int32) -> Never {
        // Keep the state locked, so that other threads print nothing more.
        state.withLock { state in
            state.progress.end()
            for report in state.reports.values.sorted(by: { $0.database < $1.database }) where asJSON {
                var report = report
                report.state = "stopped"
                state.output.json(report.json)
            }
            try? state.output.flush()
            SignalSet.endProgram(by: signal)
        }
    }
}
