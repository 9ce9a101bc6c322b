/// What stands on the command line.
struct BenchOptions {
    enum SuiteName: String, CaseIterable {
        case socket, steady, crosscheck, mixed, bystander, start, memory, expiry, large, embedded, models, hits,
            settings
    }

    static let help = """
        Usage: larderbench [OPTIONS]
        Measures Larder next to redis-server, memcached, raw LevelDB, SQLite and diskcache, in one run, and prints medians
        with minimum and maximum.

          --quick              3 shorter rounds and fewer rows: some five minutes
          --rounds N           how often every row is measured (default 5, with --quick 3); the suites steady,
                               bystander, start, memory, expiry, large, hits and settings at most 3 times, with --quick
                               all but socket once
          --seconds S          how long one measurement over a socket takes, about (default 1.5, with --quick 0.3)
          --only LIST          of: socket, steady, crosscheck, mixed, bystander, start, memory, expiry, large, embedded,
                               models, hits, settings; separated by commas (default: all; with --quick all but
                               crosscheck, expiry, large and settings)
          --large N            the number of entries of the suite large (default 10000000)
          --json FILE          also write every sample as JSON
          --page FILE          also write the report into a page, between its lines 'run: begin' and 'run: end'
          --dir DIR            where databases and sockets are put, on a real disk (default /var/tmp)
          --larderd PATH       the daemon to measure (default: beside this program)
          --redis-server PATH  (default: redis-server, found in PATH)
          --redis-benchmark PATH
          --memcached PATH
          --python PATH        a Python that has diskcache (default: .build/venv/bin/python if it is there, else python3)
          --help

        Exit codes: 0 all was measured, 1 something could not be measured, 2 usage.

        """

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
    var redisBenchmark = "redis-benchmark"
    var memcached = "memcached"
    var python = BenchOptions.defaultPython
    var showsHelp = false
    /// This program, which is also the null server.
    var program = ProgramPaths.own
    /// The socket to serve as the null server instead of measuring: how the program starts itself.
    var nullServerSocket: String?

    var roundCount: Int { rounds ?? (isQuick ? 3 : 5) }
    /// How often a suite is run.
    func roundCount(of suite: SuiteName) -> Int {
        switch suite {
        case .socket, .crosscheck: roundCount
        case .mixed, .embedded, .models: isQuick ? 1 : roundCount
        case .steady, .bystander, .start, .memory, .expiry, .large, .hits, .settings: min(roundCount, isQuick ? 1 : 3)
        }
    }

    var secondsPerRun: Double { seconds ?? (isQuick ? 0.3 : 1.5) }
    var suites: Set<SuiteName> {
        only ?? Set(SuiteName.allCases).subtracting(isQuick ? [.crosscheck, .expiry, .large, .settings] : [])
    }

    private static var defaultPython: String {
        access(".build/venv/bin/python", X_OK) == 0 ? ".build/venv/bin/python" : "python3"
    }

    init(_ words: [String]) throws(BenchError) {
        var rest = words[...]
        while let word = rest.popFirst() {
            switch word {
            case "--quick": isQuick = true
            case "--help", "-h": showsHelp = true
            default:
                guard Self.valued.contains(word) else { throw BenchError("unknown option \(word)") }
                guard let value = rest.popFirst(), !value.isEmpty else { throw BenchError("\(word) needs a value") }
                try take(word, value)
            }
        }
    }

    private static let valued: Set = [
        "--rounds", "--seconds", "--only", "--large", "--json", "--page", "--dir", "--larderd", "--redis-server",
        "--redis-benchmark", "--memcached", "--python", "--null-server",
    ]

    private mutating func take(_ name: String, _ value: String) throws(BenchError) {
        switch name {
        case "--rounds": rounds = try Self.number(name, value, 1...1000)
        case "--large": largeCount = try Self.number(name, value, 1000...1_000_000_000)
        case "--seconds":
            guard let number = Double(value), number >= 0.05, number <= 60 else {
                throw BenchError("--seconds \(value): it is a number from 0.05 to 60")
            }
            seconds = number
        case "--only": only = try Self.suites(value)
        case "--json": jsonPath = value
        case "--page": pagePath = value
        case "--dir": directory = value
        case "--larderd": larderd = value
        case "--redis-server": redisServer = value
        case "--memcached": memcached = value
        case "--python": python = value
        case "--null-server": nullServerSocket = value
        default: redisBenchmark = value
        }
    }

    private static func suites(_ list: String) throws(BenchError) -> Set<SuiteName> {
        var result: Set<SuiteName> = []
        for part in list.split(separator: ",", omittingEmptySubsequences: false) {
            guard let suite = SuiteName(rawValue: String(part)) else {
                let all = SuiteName.allCases.map(\.rawValue).joined(separator: ", ")
                throw BenchError("--only \(list): '\(part)' is none of \(all)")
            }
            result.insert(suite)
        }
        return result
    }

    private static func number(_ name: String, _ value: String, _ range: ClosedRange<Int>) throws(BenchError) -> Int {
        guard let number = Int(value), range.contains(number) else {
            throw BenchError("\(name) \(value): it is a number from \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }
}
