import LarderClient
import LarderPlatform

/// The parsed reply to INFO.
struct InfoFigures {
    /// The statistics of one command since the daemon's start or since CONFIG RESETSTAT.
    struct Command {
        let name: String
        var calls: Int64 = 0
        var microseconds: Int64 = 0
        var failed: Int64 = 0
        var rejected: Int64 = 0
        /// The 50th, 99th and 99.9th percentile as upper bounds, in microseconds; nil if unknown.
        var p50: Double?
        var p99: Double?
        var p999: Double?

        var averageMicroseconds: Double { calls > 0 ? Double(microseconds) / Double(calls) : 0 }
    }

    private let info: InfoText
    private(set) var commands: [String: Command] = [:]

    init(_ text: String) {
        info = InfoText(text)
        for prefix in ["cmdstat_", "latency_percentiles_usec_"] {
            for (name, parts) in info.textLists(prefix) { take(name, parts) }
        }
    }

    /// The origins that this user may see: for each, its database and its fields in INFO.
    var origins: [(database: String, fields: [String: String])] {
        info.textLists("origin_").map { name, parts in
            (name, Dictionary(parts.map { (String($0.name), String($0.text)) }) { first, _ in first })
        }
    }

    private mutating func take(_ command: String, _ parts: [(name: Substring, text: Substring)]) {
        var figures = commands[command] ?? Command(name: command)
        for (name, text) in parts {
            switch name {
            case "calls": figures.calls = Int64(text) ?? 0
            case "usec": figures.microseconds = Int64(text) ?? 0
            case "failed_calls": figures.failed = Int64(text) ?? 0
            case "rejected_calls": figures.rejected = Int64(text) ?? 0
            case "p50": figures.p50 = Double(text)
            case "p99": figures.p99 = Double(text)
            case "p99.9": figures.p999 = Double(text)
            default: break
            }
        }
        commands[command] = figures
    }

    func text(_ name: String) -> String? { info.text(name) }

    /// Returns the number in a field; 0 if there is none. Clamps extreme values, so that sums cannot overflow.
    func number(_ name: String) -> Int64 {
        text(name).flatMap { Int64($0) }.map { min(max($0, -Self.numberMax), Self.numberMax) } ?? 0
    }

    static let numberMax: Int64 = 1 << 58

    /// The hit ratio of reads, from 0 to 1; nil if there were no reads.
    var hitShare: Double? { Self.share(number("keyspace_hits"), number("keyspace_misses")) }

    static func share(_ hits: Int64, _ misses: Int64) -> Double? {
        let sum = Double(hits) + Double(misses)
        return sum > 0 ? Double(hits) / sum : nil
    }
}

/// The changes between two replies to INFO, as rates.
struct InfoRates {
    let now: InfoFigures
    private let before: InfoFigures
    let seconds: Double

    /// - Parameter milliseconds: the time between the two replies.
    init(from before: InfoFigures, to now: InfoFigures, milliseconds: Int64) {
        (self.before, self.now) = (before, now)
        seconds = Double(max(1, milliseconds)) / 1000
    }

    /// Whether the daemon was restarted between the replies. The rates are then meaningless.
    var isRestarted: Bool { before.text("run_id") != now.text("run_id") }

    /// Returns the increase of a counter; 0 if the counter was reset.
    func difference(_ name: String) -> Int64 { Self.rise(before.number(name), now.number(name)) }

    private static func rise(_ old: Int64, _ new: Int64) -> Int64 {
        let (difference, overflow) = new.subtractingReportingOverflow(old)
        return overflow ? 0 : max(0, difference)
    }

    func perSecond(_ name: String) -> Double { Double(difference(name)) / seconds }

    /// The hit ratio of reads between the replies; nil if there were no reads.
    var hitShare: Double? { InfoFigures.share(difference("keyspace_hits"), difference("keyspace_misses")) }

    struct Command {
        let name: String
        let callsPerSecond: Double
        /// The load that the command causes, as a fraction of one CPU.
        let load: Double
        let averageMicroseconds: Double
        /// The statistics since the daemon's start.
        let total: InfoFigures.Command
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

/// Runs commands that take long, and shows their progress on a terminal.
enum LongCall {
    /// Sends a command and waits for its reply. On a terminal, shows the progress that INFO reports.
    /// - Parameter field: the prefix of the command's progress fields in `INFO larder`.
    static func run(
        _ client: BlockingLarderClient, _ words: [String], field: String, _ context: Context
    ) throws -> RESPValue {
        guard isatty(STDERR_FILENO) == 1 else { return try client.command(words) }
        var options = context.options
        options.socketPath = client.socketPath
        let observer = try Context(options: options, output: context.output).connect()
        let progress = ProgressLine()
        defer { progress.end() }
        let task = Awaited(onThread: { try client.command(words) })
        while !task.waitForEnd(milliseconds: 200) {
            guard let info = try? observer.serverInfo(section: "larder") else { continue }
            let figures = InfoFigures(info)
            progress.show(
                done: Int(clamping: figures.number(field + "_done_bytes")),
                total: Int(clamping: figures.number(field + "_total_bytes")))
        }
        return try task.result.get()
    }
}
