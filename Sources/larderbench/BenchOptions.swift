/// What stands on the command line.
struct BenchOptions {
    enum SuiteName: String, CaseIterable { case embedded, socket, mixed, start }

    static let help = """
        Usage: larderbench [OPTIONS]
        Measures Larder next to raw LevelDB and redis-server, in one run, and prints medians with minimum and maximum.

          --quick              3 shorter rounds and fewer rows: a couple of minutes
          --rounds N           how often every row is measured (default 5, with --quick 3)
          --seconds S          how long one measurement over a socket takes, about (default 1.5, with --quick 0.6)
          --only LIST          of: embedded, socket, mixed, start; separated by commas (default: all)
          --json FILE          also write every sample as JSON
          --dir DIR            where databases and sockets are put, on a real disk (default /var/tmp)
          --larderd PATH       the daemon to measure (default: beside this program)
          --redis-server PATH  (default: redis-server, found in PATH)
          --redis-benchmark PATH
          --help

        Exit codes: 0 all was measured, 1 something could not be measured, 2 usage.

        """

    var isQuick = false
    var rounds: Int?
    var seconds: Double?
    var suites = Set(SuiteName.allCases)
    var jsonPath: String?
    var directory = "/var/tmp"
    var larderd = ProgramPaths.beside("larderd")
    var redisServer = "redis-server"
    var redisBenchmark = "redis-benchmark"
    var showsHelp = false

    var roundCount: Int { rounds ?? (isQuick ? 3 : 5) }
    var secondsPerRun: Double { seconds ?? (isQuick ? 0.6 : 1.5) }

    init(_ words: [String]) throws(BenchError) {
        var rest = words[...]
        while let word = rest.popFirst() {
            switch word {
            case "--quick": isQuick = true
            case "--help", "-h": showsHelp = true
            default: try take(word, &rest)
            }
        }
    }

    private mutating func take(_ name: String, _ rest: inout ArraySlice<String>) throws(BenchError) {
        let known = [
            "--rounds", "--seconds", "--only", "--json", "--dir", "--larderd", "--redis-server", "--redis-benchmark",
        ]
        guard known.contains(name) else { throw BenchError("unknown option \(name)") }
        guard let value = rest.popFirst(), !value.isEmpty else { throw BenchError("\(name) needs a value") }
        switch name {
        case "--rounds":
            guard let number = Int(value), (1...1000).contains(number) else {
                throw BenchError("--rounds \(value): it is a number from 1 to 1000")
            }
            rounds = number
        case "--seconds":
            guard let number = Double(value), number >= 0.05, number <= 60 else {
                throw BenchError("--seconds \(value): it is a number from 0.05 to 60")
            }
            seconds = number
        case "--only":
            suites = []
            for part in value.split(separator: ",") {
                guard let suite = SuiteName(rawValue: String(part)) else {
                    let all = SuiteName.allCases.map(\.rawValue).joined(separator: ", ")
                    throw BenchError("--only \(value): '\(part)' is none of \(all)")
                }
                suites.insert(suite)
            }
        case "--json": jsonPath = value
        case "--dir": directory = value
        case "--larderd": larderd = value
        case "--redis-server": redisServer = value
        default: redisBenchmark = value
        }
    }
}
