import LarderClient
import LarderPlatform

/// Replicates the databases of one larder to another one, with a follower per database.
struct Replication {
    /// The connection options of the two daemons.
    struct Ends {
        var from: Options
        var to: Options
    }

    private let ends: Ends
    private let choice: ReplicationOptions
    private let context: Context

    /// A call may wait for a change, and for a checkpoint of the daemon.
    private static let patienceMilliseconds: Int64 = 55_000
    private static let waitMilliseconds = 10_000
    /// The interval of checks for new databases.
    private static let lookMilliseconds: Int64 = 5_000
    private static let restMillisecondsMax: Int64 = 10_000

    init(_ ends: Ends, _ choice: ReplicationOptions, _ context: Context) {
        self.ends = ends
        self.choice = choice
        self.context = context
    }

    private struct Clients {
        let from: BlockingLarderClient
        let to: BlockingLarderClient

        func follower(_ choice: ReplicationOptions, _ database: String) throws -> LarderFollower {
            var choice = choice
            choice.database = database
            return try LarderFollower(from: from, to: to, choice)
        }
    }

    private func connect() throws -> Clients {
        var (from, to) = (ends.from, ends.to)
        (from.database, to.database) = (nil, nil)
        return Clients(
            from: try from.connect(waitingMilliseconds: Self.patienceMilliseconds),
            to: try to.connect(waitingMilliseconds: Self.patienceMilliseconds))
    }

    /// Returns the databases to follow.
    /// - Parameter mustExist: whether the databases given by options must exist; if not, they may be created later.
    private func databases(_ clients: Clients, mustExist: Bool) throws -> [String] {
        let known = try clients.from.databases().map(\.name).filter {
            $0 != LarderFollower.positionsDatabase && !CompanionName.isOne($0)
        }
        if context.options.databases.isEmpty { return known }
        // Databases removed at the source may still exist at the target.
        let both = known + (try clients.to.databases().map(\.name))
        for name in context.options.databases where mustExist && !both.contains(name) {
            throw UsageError(
                "there is no database '\(printableKey(name.utf8))'" + Suggestion.text(for: name, among: known),
                verb: "replicate")
        }
        return context.options.databases
    }

    // MARK: Once

    /// Follows until the target is up to date. A database that cannot be followed is reported, and the others continue.
    /// - Returns: `done`, or the exit code of the first failure.
    /// - Throws: if a larder is not available at the start, or a given database does not exist.
    func runOnce() throws -> ExitCode {
        let clients = try connect()
        // Check this even if there is nothing to follow.
        _ = try clients.follower(choice, "0")
        let progress = ProgressLine(.entries)
        defer { progress.end() }
        var (done, total) = (0, 0)
        var result = ExitCode.done
        for database in try databases(clients, mustExist: true) {
            var report = ReplicationReport(database: database, state: "idle", progress: ReplicationProgress())
            var failure: Failure?
            do {
                let follower = try clients.follower(choice, database)
                defer { report.progress = follower.progress }
                repeat {
                    try follower.step()
                    progress.show(done: done + follower.progress.done, total: total + follower.progress.total)
                } while follower.progress.state != .idle
            } catch {
                failure = Self.failure(error, database)
                report.state = "error"
                report.error = failure?.message
            }
            done += report.progress.done
            total += report.progress.total
            progress.end()
            if context.options.json {
                context.output.json(report.json)
            } else if failure == nil {
                context.output.line(report.text)
            }
            try context.output.flush()
            guard let failure else { continue }
            failure.show(asJSON: context.options.json)
            if result == .done { result = failure.exitCode }
            if failure.exitCode == .noDaemon { break }
        }
        return result
    }

    /// The report for a database that could not be followed.
    private static func failure(_ error: any Error, _ database: String) -> Failure {
        let failure = Failure(error)
        return Failure(code: failure.code, message: "\(database): \(failure.message)", exitCode: failure.exitCode)
    }

    // MARK: Continuously

    /// Follows until the program is asked to stop.
    func resume() throws -> Never {
        let signals = EndingSignals()
        // Report errors at the start immediately.
        let first = try connect()
        let watch = ReplicationWatch(context, signals)
        var running: Set<String> = []
        func start(_ names: [String]) {
            for name in names where running.insert(name).inserted {
                let work = SendableReplication(replication: self, watch: watch)
                _ = WorkThread(name: "replicate") { work.replication.follow(name, work.watch) }
            }
        }
        let names = try databases(first, mustExist: false)
        for name in names + ["0"] { _ = try first.follower(choice, name) }
        start(names)
        while true {
            if let signal = signals.wait(milliseconds: Self.lookMilliseconds) { watch.stop(by: signal) }
            if context.options.databases.isEmpty, let names = try? databases(first, mustExist: false) { start(names) }
            watch.showProgress()
        }
    }

    fileprivate func follow(_ database: String, _ watch: ReplicationWatch) {
        var follower: LarderFollower?
        var rest: Int64 = 250
        var previous = ReplicationReport(database: database, state: "initial", progress: ReplicationProgress())
        while true {
            do {
                if follower == nil { follower = try connect().follower(choice, database) }
                let state = try follower?.step(waitMilliseconds: previous.state == "idle" ? Self.waitMilliseconds : 0)
                rest = 250
                previous = ReplicationReport(
                    database: database, state: state?.rawValue ?? "initial",
                    progress: follower?.progress ?? previous.progress)
                watch.note(previous)
            } catch {
                previous.state = "error"
                let failure = Failure(error)
                previous.error = failure.message
                watch.note(previous, failure.exitCode)
                // After a lost connection, the next call reconnects. After an invalid argument, create a new follower.
                if case let error as LarderClientError = error, error.code == .invalidArgument { follower = nil }
                if watch.rest(milliseconds: rest) { return }
                rest = min(2 * rest, Self.restMillisecondsMax)
            }
        }
    }
}

/// Passes a replication to another thread. `@unchecked Sendable`: nothing changes it.
private struct SendableReplication: @unchecked Sendable {
    let replication: Replication
    let watch: ReplicationWatch
}

/// The report about the replication of a database.
struct ReplicationReport: Equatable {
    let database: String
    /// The follower's state, or `stopped`, or `error`.
    var state: String
    var progress: ReplicationProgress
    var error: String?

    var json: JSONText {
        var members: [(name: String, value: JSONText)] = [
            ("time", .integer(Exporter.now())), ("database", .text(database)), ("state", .text(state)),
            ("total", .integer(Int64(progress.total))), ("done", .integer(Int64(progress.done))),
            ("stored", .integer(Int64(progress.stored))), ("removed", .integer(Int64(progress.removed))),
            ("kept", .integer(Int64(progress.kept))), ("passes", .integer(Int64(progress.passes))),
            ("ever", .integer(Int64(progress.everDone))),
        ]
        if let error { members.append(("error", .text(error))) }
        return .object(members)
    }

    var text: String {
        guard progress.done > 0 || progress.removed > 0 else {
            return "\(database): nothing new" + (progress.passes > 0 ? ", in a full pass" : "")
        }
        var parts = ["\(progress.done) \(progress.done == 1 ? "change" : "changes")"]
        parts.append("\(progress.stored) stored")
        if progress.removed > 0 { parts.append("\(progress.removed) removed") }
        if progress.kept > 0 { parts.append("\(progress.kept) not needed") }
        return "\(database): " + parts.joined(separator: ", ") + (progress.passes > 0 ? ", in a full pass" : "")
    }
}

/// Reports the running replications.
///
/// `@unchecked Sendable`: the variables and the output are guarded by `lock`.
final class ReplicationWatch: @unchecked Sendable {
    private let context: Context
    private let signals: EndingSignals
    private let lock = Lock()
    private let ended = Condition()
    private let progress = ProgressLine(.entries)
    private var reports: [String: ReplicationReport] = [:]
    private var notified: [String: ReplicationReport] = [:]
    private var reportedAt: [String: Int64] = [:]
    private var isStopping = false

    /// The interval of reports about a database that changes continuously.
    private static let pauseMilliseconds: Int64 = 1_000

    init(_ context: Context, _ signals: EndingSignals) {
        self.context = context
        self.signals = signals
    }

    /// - Parameter exitCode: the exit code that is shown with the report's error, if it has one.
    func note(_ report: ReplicationReport, _ exitCode: ExitCode = .done) {
        lock.withLock {
            guard !isStopping else { return }
            reports[report.database] = report
            let previous = notified[report.database]
            let isNews = previous?.state != report.state || previous?.error != report.error
            let now = MonotonicClock.milliseconds()
            if isNews, let error = report.error {
                progress.end()
                Failure(code: "replicate", message: "\(report.database): \(error); trying again", exitCode: exitCode)
                    .show(asJSON: context.options.json)
            }
            if context.options.json, previous != report,
                isNews || now - (reportedAt[report.database] ?? 0) >= Self.pauseMilliseconds
            {
                reportedAt[report.database] = now
                notified[report.database] = report
                context.output.json(report.json)
                try? context.output.flush()
            } else if isNews {
                notified[report.database] = report
            }
            show()
        }
    }

    func showProgress() { lock.withLock { show() } }

    private func show() {
        let all = reports.values.map(\.progress)
        progress.show(done: all.reduce(0) { $0 + $1.done }, total: all.reduce(0) { $0 + $1.total })
    }

    /// Waits, unless the program stops.
    /// - Returns: whether it stops.
    func rest(milliseconds: Int64) -> Bool {
        lock.withLock {
            if !isStopping { _ = ended.wait(lock, milliseconds: milliseconds) }
            return isStopping
        }
    }

    /// Reports that all replications stop, and terminates the program. The next run completes unfinished work.
    func stop(by signal: Int32) -> Never {
        lock.withLock {
            isStopping = true
            ended.broadcast()
            progress.end()
            for report in reports.values.sorted(by: { $0.database < $1.database }) where context.options.json {
                var report = report
                report.state = "stopped"
                context.output.json(report.json)
            }
            try? context.output.flush()
        }
        LoaderProcess.endProgram(by: signal)
    }
}

/// The signals that stop this program, for the thread that waits for them. Created before other threads.
struct EndingSignals {
    private static let watched = [SIGINT, SIGTERM, SIGHUP].filter { !ProcessStart.isIgnored($0) }

    init() {
        var signals = Self.set
        pthread_sigmask(SIG_BLOCK, &signals, nil)
    }

    private static var set: sigset_t {
        var signals = sigset_t()
        sigemptyset(&signals)
        for signal in watched { sigaddset(&signals, signal) }
        return signals
    }

    /// Waits for a signal, at most for a time.
    /// - Returns: its number; nil if there was none.
    func wait(milliseconds: Int64) -> Int32? {
        var signals = Self.set
        var time = timespec(tv_sec: Int(milliseconds / 1000), tv_nsec: Int(milliseconds % 1000) * 1_000_000)
        let signal = sigtimedwait(&signals, nil, &time)
        return signal > 0 ? signal : nil
    }
}
