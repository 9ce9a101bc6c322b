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

/// The changes between two samples, for one point of the charts.
struct HistoryPoint: Encodable, Sendable {
    let time: Int64
    /// Commands per second; nil if the daemon was not available, or was restarted, since the previous sample. The same
    /// applies to the five rates below.
    let commands: Double?
    let errors: Double?
    let expired: Double?
    let evicted: Double?
    let netIn: Double?
    let netOut: Double?
    /// The average time of a command in seconds; nil without commands.
    let seconds: Double?
    /// The share of reads that were hits, from 0 to 1; nil if there were no reads. `stale` and `refreshed` are shares
    /// of reads, too.
    let hits: Double?
    let stale: Double?
    let refreshed: Double?
    let clients: Double
    /// The number of fresh entries; nil if unknown.
    let entries: Double?
    let disk: Double
    let journal: Double
    let memory: Double
    /// The rates of the most frequent commands, in calls per second.
    let commandRates: [String: Double]
    let commandSeconds: [String: Double]

    /// - Parameter gapSeconds: the maximum time between two samples; changes are not computed across a longer gap.
    init(_ previous: Sample?, _ sample: Sample, gapSeconds: Int64) {
        time = sample.time
        let previous = previous.flatMap {
            let belongs = $0.run == sample.run && sample.isBehindGap != true
            return belongs && sample.time > $0.time && sample.time - $0.time <= gapSeconds ? $0 : nil
        }
        /// The increase of a counter; nil if there is no previous sample, or the counters were reset in between.
        func added(_ value: (Sample) -> Double) -> Double? {
            previous.flatMap { value(sample) >= value($0) ? value(sample) - value($0) : nil }
        }
        let span = previous.map { Double(sample.time - $0.time) } ?? 1
        func rate(_ value: (Sample) -> Double) -> Double? { added(value).map { $0 / span } }
        commands = rate { $0.commands }
        errors = rate { $0.errors }
        expired = rate { $0.expired }
        evicted = rate { $0.evicted }
        netIn = rate { $0.netIn }
        netOut = rate { $0.netOut }
        let calls = added { $0.commands } ?? 0
        seconds = calls > 0 ? added { $0.busySeconds }.map { $0 / calls } : nil
        let reads = (added { $0.hits } ?? 0) + (added { $0.misses } ?? 0)
        func share(_ value: (Sample) -> Double) -> Double? { reads > 0 ? added(value).map { min(1, $0 / reads) } : nil }
        hits = share { $0.hits }
        stale = share { $0.stale }
        refreshed = share { $0.refreshed }
        clients = sample.clients
        entries = sample.entries
        disk = sample.disk
        journal = sample.journal
        memory = sample.memory
        var (rates, means) = ([String: Double](), [String: Double]())
        for (name, last) in sample.byCommand ?? [:] {
            guard let before = previous?.byCommand?[name], last.calls >= before.calls else { continue }
            rates[name] = (last.calls - before.calls) / span
            guard last.calls > before.calls else { continue }
            means[name] = max(0, last.seconds - before.seconds) / (last.calls - before.calls)
        }
        (commandRates, commandSeconds) = (rates, means)
    }

    static func points(of samples: [Sample], gapSeconds: Int64) -> [HistoryPoint] {
        zip([nil] + samples, samples).map { HistoryPoint($0, $1, gapSeconds: gapSeconds) }
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

    init(countMax: Int, unitSeconds: Int64) {
        self.countMax = countMax
        self.unitSeconds = unitSeconds
    }

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
