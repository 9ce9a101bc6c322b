/// Runs the same loads with this program's load generator and with redis-benchmark, to validate the generator.
final class CrossCheckSuite: Suite {
    private let options: BenchOptions
    private let tree: TemporaryTree

    init(_ options: BenchOptions, _ tree: TemporaryTree) {
        self.options = options
        self.tree = tree
    }

    private static let contenders = Contender.journaling + [.redisOff, .valkeyOff]

    static func table(_ load: Load) -> String { "Cross-check with redis-benchmark: " + load.title }

    func runRound(_ round: Int, into results: Results) throws(BenchError) {
        for contender in Self.contenders.rotated(by: round) {
            Progress.note("  cross-check, \(contender.name)")
            try results.attempt("cross-check", contender, options, tree) { (server) throws(BenchError) in
                try server.fill(count: Load.keyCount, valueBytes: 64)
                for load in [Load.get(), .get(pipeline: 16), .set(), .set(pipeline: 16)] {
                    try measure(load, server, into: results)
                }
            }
        }
    }

    private func measure(_ load: Load, _ server: RunningServer, into results: Results) throws(BenchError) {
        let ours = try server.measure(load.lasting(options.secondsPerRun))
        results.add(Self.table(load), "\(server.contender.name), larderbench", ours)
        // As many requests as this program has just sent, so that both runs take about as long.
        let requests = Int(max((ours[.rate] ?? 0) * options.secondsPerRun, 5000))
        let (report, usage) = try server.usage { () throws(BenchError) in
            let report = try RedisBenchmark.run(options, load, socket: server.socket, requests: requests)
            if load.setPercent > 0 { try server.writeOut() }
            return report
        }
        results.add(
            Self.table(load), "\(server.contender.name), redis-benchmark",
            usage.figures(operations: requests)
                + [.rate: report.rate, .p50: report.p50, .p99: report.p99, .longest: report.longest])
    }
}
