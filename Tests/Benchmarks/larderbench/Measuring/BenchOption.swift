import LarderServices

typealias BenchOption = OptionRow<BenchOptions>

extension BenchOption {
    static var table: OptionTable<BenchOptions> { OptionTable("larderbench", all) }

    /// Add a row to add an option.
    private static var all: [BenchOption] {
        [
            BenchOption("--quick", nil, "3 shorter rounds and fewer rows: some twenty minutes") { options, _ in
                options.isQuick = true
            },
            BenchOption("--rounds", "N", roundsSummary) {
                $0.rounds = try $1.number(1...1000)
            },
            BenchOption(
                "--seconds", "S",
                "the approximate time of one measurement over a socket (default 1.5, with --quick 0.3)"
            ) { $0.seconds = try $1.real(0.05...60) },
            BenchOption("--only", "LIST", onlySummary) { $0.only = try BenchOptions.SuiteName.set($1) },
            BenchOption(
                "--scale", "LIST",
                "the numbers of entries of the suites scale and expiry-lag (default 100000,1000000,10000000; with --quick the "
                    + "first two)"
            ) { $0.scaleCounts = try $1.numbers(1000...1_000_000_000) },
            BenchOption(
                "--simulate", "S",
                "the seconds for the simulated day of the suite churn and for the hour of disk-bytes (default 600, with "
                    + "--quick 60)"
            ) { $0.simulationSeconds = try $1.real(0.5...86_400) },
            BenchOption(
                "--max-busy", "PERCENT",
                "refuse to measure while other programs use more of all CPUs, during one second (default 10)"
            ) { $0.busyPercentMax = try $1.real(0...100) },
            BenchOption("--json", "FILE", "also write every sample as JSON") { $0.jsonPath = try $1.path() },
            BenchOption(
                "--page", "FILE", "also write the report into this page, between its lines 'run: begin' and 'run: end'"
            ) { $0.pagePath = try $1.path() },
            BenchOption("--dir", "DIR", "the directory for databases and sockets, on a real disk (default /var/tmp)") {
                $0.directory = try $1.path()
            },
            BenchOption("--larderd", "PATH", "the daemon to measure (default: next to this program)") {
                $0.larderd = try $1.path()
            },
            BenchOption("--redis-server", "PATH", "(default: redis-server, found in PATH)") {
                $0.redisServer = try $1.path()
            },
            BenchOption("--redis-benchmark", "PATH", "(default: redis-benchmark)") {
                $0.redisBenchmark = try $1.path()
            },
            BenchOption(
                "--valkey-server", "PATH",
                "(default: .build/venv/bin/valkey-server if it exists, else valkey-server)"
            ) { $0.valkeyServer = try $1.path() },
            BenchOption("--memcached", "PATH", "(default: memcached)") { $0.memcached = try $1.path() },
            BenchOption(
                "--python", "PATH",
                "a Python that has diskcache (default: .build/venv/bin/python if it exists, else python3)"
            ) { $0.python = try $1.path() },
            // An internal option, without help.
            BenchOption("--null-server", "SOCKET", []) { $0.nullServerSocket = try $1.path() },
            BenchOption("--help", nil, ["print this help"], short: "-h") { options, _ in options.showsHelp = true },
        ]
    }

    // MARK: The help

    static var help: String {
        """
        Usage: larderbench [OPTIONS]
               larderbench fleet [OPTIONS]    (a model of larders in front of an origin: see its --help)
        Measures Larder next to redis-server, Valkey, memcached, raw LevelDB, SQLite and diskcache, in one run, and prints
        medians with minimum and maximum.

        \(helpText(all.filter { !$0.help.isEmpty }))

        Exit codes: 0 success, 1 something could not be measured, 2 wrong usage.

        """
    }

    private static var roundsSummary: String {
        let few = BenchOptions.SuiteName.list { $0.roundsMax(isQuick: false) == 3 }
        let always = BenchOptions.SuiteName.list { $0.isInQuickRuns && $0.roundsMax(isQuick: true) > 1 }
        return
            "the number of measurements of each row (default 11, with --quick 3); the suites \(few) at most 3 times, "
            + "with --quick all but \(always) once"
    }

    private static var onlySummary: String {
        "of: \(BenchOptions.SuiteName.list()); separated by commas (default: all; with --quick all but "
            + BenchOptions.SuiteName.list { !$0.isInQuickRuns } + ")"
    }
}
