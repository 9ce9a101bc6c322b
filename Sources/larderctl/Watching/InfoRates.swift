import LarderClient
import LarderPlatform

extension InfoText {
    /// The hit ratio of reads, from 0 to 1; nil if there were no reads.
    var hitShare: Double? { Self.share(integer("keyspace_hits"), integer("keyspace_misses")) }

    static func share(_ hits: Int64, _ misses: Int64) -> Double? {
        let sum = Double(hits) + Double(misses)
        return sum > 0 ? Double(hits) / sum : nil
    }
}

/// The changes between two replies to INFO, as rates.
struct InfoRates {
    let now: InfoText
    private let before: InfoText
    let seconds: Double

    /// - Parameter milliseconds: the time between the two replies.
    init(from before: InfoText, to now: InfoText, milliseconds: Int64) {
        (self.before, self.now) = (before, now)
        seconds = Double(max(1, milliseconds)) / 1000
    }

    /// Whether the daemon was restarted between the replies. The rates are then meaningless.
    var isRestarted: Bool { before.text("run_id") != now.text("run_id") }

    /// Returns the increase of a counter; 0 if the counter was reset.
    func difference(_ name: String) -> Int64 { Self.rise(before.integer(name), now.integer(name)) }

    private static func rise(_ old: Int64, _ new: Int64) -> Int64 {
        let (difference, overflow) = new.subtractingReportingOverflow(old)
        return overflow ? 0 : max(0, difference)
    }

    func perSecond(_ name: String) -> Double { Double(difference(name)) / seconds }

    /// The hit ratio of reads between the replies; nil if there were no reads.
    var hitShare: Double? { InfoText.share(difference("keyspace_hits"), difference("keyspace_misses")) }

    struct Command {
        let name: String
        let callsPerSecond: Double
        /// The load that the command causes, as a fraction of one CPU.
        let load: Double
        let averageMicroseconds: Double
        /// The statistics since the daemon's start.
        let total: CommandFigures
    }

    /// The commands in the second reply, in no particular order.
    var commands: [Command] {
        now.commands.values.map { command in
            let old = before.commands[command.name]
            let calls = Self.rise(old?.calls ?? 0, command.calls)
            let time = Self.rise(old?.microseconds ?? 0, command.microseconds)
            return Command(
                name: command.name, callsPerSecond: Double(calls) / seconds, load: Double(time) / seconds / 1_000_000,
                averageMicroseconds: calls > 0 ? Double(time) / Double(calls) : 0, total: command)
        }
    }
}

/// Runs commands that may take any time, and shows their progress on a terminal.
enum LongCall {
    /// Sends a command on a connection of its own, and waits for its reply while the daemon answers other commands
    /// within the time limit. On a terminal, shows the progress that INFO reports.
    /// - Parameters:
    ///   - observer: a connection with the time limit of the options.
    ///   - field: the prefix of the command's progress fields in `INFO larder`.
    static func run(
        _ observer: BlockingLarderClient, _ words: [String], field: String, _ context: Context
    ) throws -> RESPValue {
        var options = context.options
        options.socketPath = observer.socketPath
        let task = Awaited(onThread: { [options] in
            try options.connect(waitingMilliseconds: Int64(ClientOptions.timeoutMillisecondsMax)).command(words)
        })
        let isShown = isatty(STDERR_FILENO) == 1
        let progress = ProgressLine()
        defer { progress.end() }
        while task.result(waitingUpTo: isShown ? 200 : 1_000) == nil {
            do throws(LarderClientError) {
                try observer.ping()
            } catch {
                // An error reply is an answer too. If the daemon has terminated, the command fails as well.
                if error.code != .server { return try (task.result(waitingUpTo: 1_000) ?? .failure(error)).get() }
            }
            guard isShown, let info = try? observer.serverInfo(section: "larder") else { continue }
            let figures = InfoText(info)
            progress.show(
                done: Int(figures.integer(field + "_done_bytes")), total: Int(figures.integer(field + "_total_bytes")))
        }
        return try task.result.get()
    }
}
