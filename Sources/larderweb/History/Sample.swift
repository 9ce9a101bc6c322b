/// The daemon's figures at one instant: counters since its start, and current values.
struct Sample: Codable, Sendable, Equatable {
    /// The time of the sample in seconds since 1970.
    let time: Int64
    /// Identifies the daemon's process: after a restart, the counters start at 0.
    let run: String
    let commands: Double
    let errors: Double
    let hits: Double
    let misses: Double
    let stale: Double
    let refreshed: Double
    let expired: Double
    let evicted: Double
    let checkpoints: Double
    let netIn: Double
    let netOut: Double
    let busySeconds: Double
    let clients: Double
    /// The number of fresh entries; nil until the daemon has counted all databases.
    let entries: Double?
    let disk: Double
    let journal: Double
    let memory: Double
    /// The counters of the most frequent commands; nil in samples from an older larderweb.
    let byCommand: [String: Command]?
    /// Whether the daemon was not available just before this sample; nil means false.
    var isBehindGap: Bool?

    struct Command: Codable, Sendable, Equatable {
        let calls: Double
        let seconds: Double
    }

    /// The number of commands to keep. It is more than the charts show, because the most frequent commands since the
    /// start may differ from those of the last minutes.
    private static let commandsMax = 8

    init(_ figures: DaemonFigures, time: Int64) {
        func number(_ name: String) -> Double { figures.info.number(name) ?? 0 }
        self.time = time
        run = String((figures.info.text("run_id") ?? "").prefix(8))
        commands = number("total_commands_processed")
        errors = number("total_error_replies")
        hits = number("keyspace_hits")
        misses = number("keyspace_misses")
        stale = number("stale_served")
        refreshed = number("leases_granted")
        expired = number("expired_keys")
        evicted = number("evicted_entries")
        checkpoints = number("checkpoints")
        netIn = number("total_net_input_bytes")
        netOut = number("total_net_output_bytes")
        busySeconds = figures.commands.reduce(0) { $0 + Double($1.microseconds) / 1_000_000 }
        clients = number("connected_clients")
        entries = figures.isCounted ? figures.entries.values.reduce(0, +) : nil
        disk = number("disk_bytes")
        journal = number("journal_bytes")
        memory = number("used_memory_rss")
        let most = figures.commands.prefix(Self.commandsMax)
        let counters = most.map {
            ($0.name, Command(calls: Double($0.calls), seconds: Double($0.microseconds) / 1_000_000))
        }
        byCommand = Dictionary(counters) { $1 }
    }
}

extension Sample {
    /// Returns a point of the charts: rates per second, shares of reads, and current values. Rates and shares are
    /// missing if the daemon was not available, or was restarted, since the previous sample.
    /// - Parameter gapSeconds: the maximum time between two samples; changes are not computed across a longer gap.
    func point(after previous: Sample?, _ gapSeconds: Int64) -> JSONObject {
        let previous = previous.flatMap {
            let belongs = $0.run == run && isBehindGap != true
            return belongs && time > $0.time && time - $0.time <= gapSeconds ? $0 : nil
        }
        let span = previous.map { Double(time - $0.time) } ?? 1
        /// The increase of a counter; nil if there is no previous sample, or the counters were reset in between.
        func added(_ value: (Sample) -> Double) -> Double? {
            previous.flatMap { value(self) >= value($0) ? value(self) - value($0) : nil }
        }
        func rate(_ value: (Sample) -> Double) -> Double? { added(value).map { $0 / span } }
        let reads = (added(\.hits) ?? 0) + (added(\.misses) ?? 0)
        func share(_ value: (Sample) -> Double) -> Double? { reads > 0 ? added(value).map { min(1, $0 / reads) } : nil }
        let calls = added(\.commands) ?? 0
        // The average time of a command.
        let seconds = calls > 0 ? added(\.busySeconds).map { $0 / calls } : nil
        var (rates, means) = ([String: Double](), [String: Double]())
        for (name, last) in byCommand ?? [:] {
            guard let before = previous?.byCommand?[name], last.calls >= before.calls else { continue }
            rates[name] = (last.calls - before.calls) / span
            guard last.calls > before.calls else { continue }
            means[name] = max(0, last.seconds - before.seconds) / (last.calls - before.calls)
        }
        return [
            "time": time, "commands": rate(\.commands), "errors": rate(\.errors), "expired": rate(\.expired),
            "evicted": rate(\.evicted), "netIn": rate(\.netIn), "netOut": rate(\.netOut), "seconds": seconds,
            "hits": share(\.hits), "stale": share(\.stale), "refreshed": share(\.refreshed), "clients": clients,
            "entries": entries, "disk": disk, "journal": journal, "memory": memory, "commandRates": rates,
            "commandSeconds": means,
        ]
    }
}

/// A limited number of samples, in the order of their times.
struct SampleSeries: Sendable {
    private(set) var samples: [Sample] = []
    private let countMax: Int
    /// At most one sample is kept per this many seconds.
    private let unitSeconds: Int64
    /// Whether the daemon was not available since the last sample.
    private var isInterrupted = false

    init(countMax: Int, unitSeconds: Int64) { (self.countMax, self.unitSeconds) = (countMax, unitSeconds) }

    /// Adds a sample. If the clock was set back, drops the samples with later times.
    /// - Returns: the added sample; nil if it was dropped, because the last sample is in the same unit of time.
    mutating func add(_ sample: Sample) -> Sample? {
        if let ahead = samples.firstIndex(where: { $0.time > sample.time }) { samples.removeSubrange(ahead...) }
        if let last = samples.last, last.time / unitSeconds == sample.time / unitSeconds { return nil }
        var sample = sample
        if isInterrupted { sample.isBehindGap = true }
        isInterrupted = false
        samples = samples.suffix(countMax - 1) + [sample]
        return sample
    }

    /// Marks a gap before the next sample, because the daemon is not available.
    mutating func interrupt() { isInterrupted = true }

    /// Inserts stored samples, in any order, before the existing ones. Samples later than `now` are skipped.
    mutating func prepend(_ kept: [Sample], now: Int64) {
        let end = min(now, samples.first.map { $0.time - 1 } ?? now)
        let previous = kept.filter { $0.time <= end }.sorted { $0.time < $1.time }
        samples = (previous + samples).suffix(countMax)
    }
}
