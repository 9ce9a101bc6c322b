import LarderPlatform

/// The parsed command line.
struct BenchOptions {
    var isQuick = false
    var rounds: Int?
    var seconds: Double?
    var only: Set<SuiteName>?
    var largeCount = 10_000_000
    var jsonPath: String?
    var pagePath: String?
    var directory = "/var/tmp"
    var larderd = ProgramPaths.beside("larderd")
    var redisServer = "redis-server"
    /// nil if Valkey is not measured.
    var valkeyServer: String?
    var redisBenchmark = "redis-benchmark"
    var memcached = "memcached"
    var python = BenchOptions.defaultPython
    var showsHelp = false
    /// The path of this program, which is also the null server.
    var program = ProgramPaths.own
    /// The socket to serve as the null server, instead of measuring. The benchmark starts itself with this option.
    var nullServerSocket: String?

    var roundCount: Int { rounds ?? (isQuick ? 3 : 5) }
    /// The number of rounds of a suite.
    func roundCount(of suite: SuiteName) -> Int { min(roundCount, suite.roundsMax(isQuick: isQuick)) }

    var secondsPerRun: Double { seconds ?? (isQuick ? 0.3 : 1.5) }
    var suites: Set<SuiteName> {
        only ?? Set(SuiteName.allCases.filter { !isQuick || $0.isInQuickRuns })
    }

    private static var defaultPython: String {
        access(".build/venv/bin/python", X_OK) == 0 ? ".build/venv/bin/python" : "python3"
    }

    init(_ words: [String]) throws(BenchError) {
        try BenchOption.table.parse(words, into: &self)
    }
}
