/// The share of requests that the memory tier answers, compared with policies from the literature with the same
/// capacity in entries.
final class HitRatioSuite: Suite {
    static let tier = "Larder's memory tier"
    static let sieve = "SIEVE"
    private static let budgets = [2 << 20, 8 << 20]

    private let options: BenchOptions
    private let tree: TemporaryTree

    init(_ options: BenchOptions, _ tree: TemporaryTree) {
        self.options = options
        self.tree = tree
    }

    static func table(_ kind: Trace.Kind, _ budget: Int) -> String {
        "Hit ratio: \(kind.title), \(Trace.keyCount) keys, memory tier of \(budget >> 20) MiB"
    }

    static var tables: [String] { Trace.Kind.allCases.flatMap { kind in budgets.map { table(kind, $0) } } }

    /// The first half of a trace fills the caches.
    func runRound(_ round: Int, into results: Results) throws(BenchError) {
        for kind in options.isQuick ? [.zipf10, .scans] : Trace.Kind.allCases {
            Progress.note("  hit ratio, \(kind.title)")
            let trace = Trace(kind, count: options.isQuick ? 500_000 : 2_000_000, seed: UInt64(round + 1))
            try results.attempt("hit ratio, \(kind.title)") { () throws(BenchError) in
                let directory = try tree.makeDirectory("trace")
                defer { TemporaryTree.remove(directory) }
                do {
                    let probe = try TierProbe(directory, universe: trace.universe)
                    for budget in Self.budgets.prefix(options.isQuick ? 1 : 2) {
                        try measure(trace, budget, probe, Self.table(kind, budget), results)
                    }
                } catch let error as BenchError {
                    throw error
                } catch {
                    throw BenchError("\(error)")
                }
            }
        }
    }

    private func measure(_ trace: Trace, _ budget: Int, _ probe: TierProbe, _ table: String, _ results: Results) throws
    {
        let start = trace.keys.count / 2
        let tier = try probe.run(trace, memoryBytes: budget, from: start)
        results.add(table, Self.tier, [.hitRatio: tier.hitRatio * 100, .entries: Double(tier.count)])
        guard tier.count > 1 else { throw BenchError("the memory tier holds \(tier.count) entries") }
        let universe = trace.universe
        let simulators: [(String, any CacheSimulator)] = [
            ("S3-FIFO", S3FIFOSimulator(capacity: tier.count, universe: universe)),
            (Self.sieve, SieveSimulator(capacity: tier.count, universe: universe)),
            ("LRU", LRUSimulator(capacity: tier.count, universe: universe)),
            ("optimum (Belady)", BeladySimulator(capacity: tier.count, universe: universe, trace: trace.keys)),
        ]
        for (name, simulator) in simulators {
            try Interruption.check()
            var simulator = simulator
            let ratio = simulator.hitRatio(trace.keys, from: start)
            results.add(table, name, [.hitRatio: ratio * 100, .entries: Double(simulator.count)])
        }
    }
}
