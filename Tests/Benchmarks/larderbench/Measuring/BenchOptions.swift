import LarderPlatform

/// The parsed command line.
struct BenchOptions {
    var isQuick = false
    var rounds: Int?
    var seconds: Double?
    var only: Set<SuiteName>?
    /// The numbers of entries of the suites scale and expiry-lag, in ascending order.
    var scaleCounts: [Int]?
    /// The time in seconds of a simulated day, or hour, of the suites churn and disk-bytes.
    var simulationSeconds: Double?
    /// The maximum percentage of all CPUs that other programs may use before a run.
    var busyPercentMax = 10.0
    var jsonPath: String?
    var pagePath: String?
    var directory = "/var/tmp"
    var larderd = ProgramPaths.beside("larderd")
    var redisServer = "redis-server"
    var valkeyServer = installed("valkey-server") ?? "valkey-server"
    var redisBenchmark = "redis-benchmark"
    var memcached = "memcached"
    var python = installed("python") ?? "python3"
    var showsHelp = false
    /// The path of this program, which is also the null server.
    var program = ProgramPaths.own
    /// The socket to serve as the null server, instead of measuring. The benchmark starts itself with this option.
    var nullServerSocket: String?

    var roundCount: Int { rounds ?? (isQuick ? 3 : 11) }
    /// The number of rounds of a suite.
    func roundCount(of suite: SuiteName) -> Int { min(roundCount, suite.roundsMax(isQuick: isQuick)) }

    var secondsPerRun: Double { seconds ?? (isQuick ? 0.3 : 1.5) }
    var secondsPerSimulation: Double { simulationSeconds ?? (isQuick ? 60 : 600) }
    var countsOfScale: [Int] { scaleCounts ?? (isQuick ? [100_000, 1_000_000] : [100_000, 1_000_000, 10_000_000]) }
    var suites: Set<SuiteName> {
        only ?? Set(SuiteName.allCases.filter { !isQuick || $0.isInQuickRuns })
    }

    /// The path of a program that `make bench-deps` has installed below .build; nil if it has not.
    private static func installed(_ program: String) -> String? {
        let path = ".build/venv/bin/" + program
        return access(path, X_OK) == 0 ? path : nil
    }

    init(_ words: [String]) throws(BenchError) {
        try BenchOption.table.parse(words, into: &self)
    }
}
