/// An option of the command line: how it is parsed, and its help.
struct BenchOption: Sendable {
    let name: String
    /// The name of the value in the help; nil for an option without a value.
    let value: String?
    /// nil for an internal option.
    let summary: String?
    let take: @Sendable (inout BenchOptions, String) throws(BenchError) -> Void

    /// Add a row to add an option.
    static let all: [BenchOption] = [
        BenchOption("--quick", nil, "3 shorter rounds and fewer rows: some five minutes") { options, _ in
            options.isQuick = true
        },
        BenchOption("--rounds", "N", roundsSummary) { (options, value) throws(BenchError) in
            options.rounds = try number("--rounds", value, 1...1000)
        },
        BenchOption(
            "--seconds", "S", "the approximate time of one measurement over a socket (default 1.5, with --quick 0.3)"
        ) { (options, value) throws(BenchError) in
            guard let number = Double(value), number >= 0.05, number <= 60 else {
                throw BenchError("--seconds \(value): must be a number from 0.05 to 60")
            }
            options.seconds = number
        },
        BenchOption("--only", "LIST", onlySummary) { (options, value) throws(BenchError) in
            options.only = try BenchOptions.SuiteName.set(value)
        },
        BenchOption("--large", "N", "the number of entries of the suite large (default 10000000)") {
            (options, value) throws(BenchError) in
            options.largeCount = try number("--large", value, 1000...1_000_000_000)
        },
        BenchOption("--json", "FILE", "also write every sample as JSON") { $0.jsonPath = $1 },
        BenchOption(
            "--page", "FILE", "also write the report into this page, between its lines 'run: begin' and 'run: end'"
        ) { $0.pagePath = $1 },
        BenchOption("--dir", "DIR", "the directory for databases and sockets, on a real disk (default /var/tmp)") {
            $0.directory = $1
        },
        BenchOption("--larderd", "PATH", "the daemon to measure (default: next to this program)") { $0.larderd = $1 },
        BenchOption("--redis-server", "PATH", "(default: redis-server, found in PATH)") { $0.redisServer = $1 },
        BenchOption("--redis-benchmark", "PATH", "(default: redis-benchmark)") { $0.redisBenchmark = $1 },
        BenchOption("--valkey-server", "PATH", "measure Valkey too (default: not)") { $0.valkeyServer = $1 },
        BenchOption("--memcached", "PATH", "(default: memcached)") { $0.memcached = $1 },
        BenchOption(
            "--python", "PATH",
            "a Python that has diskcache (default: .build/venv/bin/python if it exists, else python3)"
        ) { $0.python = $1 },
        BenchOption("--null-server", "SOCKET", nil) { $0.nullServerSocket = $1 },
        BenchOption("--help", nil, "print this help") { options, _ in options.showsHelp = true },
    ]

    private init(
        _ name: String, _ value: String?, _ summary: String?,
        take: @escaping @Sendable (inout BenchOptions, String) throws(BenchError) -> Void
    ) {
        self.name = name
        self.value = value
        self.summary = summary
        self.take = take
    }

    private static func number(_ name: String, _ value: String, _ range: ClosedRange<Int>) throws(BenchError) -> Int {
        guard let number = Int(value), range.contains(number) else {
            throw BenchError("\(name) \(value): must be a number from \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }

    // MARK: The help

    static var help: String {
        let options = all.compactMap { option in
            option.summary.map { OptionHelp.line(option.name + (option.value.map { " " + $0 } ?? ""), $0) }
        }
        return """
            Usage: larderbench [OPTIONS]
                   larderbench fleet [OPTIONS]    (a model of larders in front of an origin: see its --help)
            Measures Larder next to redis-server, Valkey, memcached, raw LevelDB, SQLite and diskcache, in one run, and prints
            medians with minimum and maximum.

            \(options.joined(separator: "\n"))

            Exit codes: 0 success, 1 something could not be measured, 2 wrong usage.

            """
    }

    private static var roundsSummary: String {
        let few = BenchOptions.SuiteName.list { $0.roundsMax(isQuick: false) == 3 }
        let always = BenchOptions.SuiteName.list { $0.isInQuickRuns && $0.roundsMax(isQuick: true) > 1 }
        return "the number of measurements of each row (default 5, with --quick 3); the suites \(few) at most 3 times, "
            + "with --quick all but \(always) once"
    }

    private static var onlySummary: String {
        "of: \(BenchOptions.SuiteName.list()); separated by commas (default: all; with --quick all but "
            + BenchOptions.SuiteName.list { !$0.isInQuickRuns } + ")"
    }
}
