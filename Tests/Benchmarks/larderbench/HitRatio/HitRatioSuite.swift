/// Measures hit ratios. The memory tier is compared with policies from the literature, with the same capacity in
/// entries. A larder with a disk limit is compared with FIFO and LRU, with the same number of bytes.
final class HitRatioSuite: Suite {
    static let tier = "Larder's memory tier"
    static let sieve = "SIEVE"
    static let disk = "larder with a disk budget"
    static let leastRecent = "LRU of the same bytes"
    private static let diskBytes = 48 << 20
    private static let diskKinds: [Trace.Kind] = [.zipf10, .scans]
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

    static func diskTable(_ kind: Trace.Kind) -> String {
        "Hit ratio: \(kind.title), \(Trace.keyCount) keys of 1 KiB, disk budget of \(diskBytes >> 20) MiB"
    }

    static var diskTables: [String] { diskKinds.map(diskTable) }

    static var tables: [String] { Trace.Kind.allCases.flatMap { kind in budgets.map { table(kind, $0) } } }

    /// The first half of a trace only fills the caches.
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
                    if Self.diskKinds.contains(kind) { try measureDisk(kind, trace, results) }
                } catch let error as BenchError {
                    throw error
                } catch {
                    throw BenchError("\(error)")
                }
            }
        }
    }

    /// The capacity of the other policies counts only keys and values. All other bytes that a larder writes reduce its
    /// hit ratio.
    private func measureDisk(_ kind: Trace.Kind, _ trace: Trace, _ results: Results) throws {
        let directory = try tree.makeDirectory("disk")
        defer { TemporaryTree.remove(directory) }
        let start = trace.keys.count / 2
        let table = Self.diskTable(kind)
        let outcome = try DiskProbe(directory).run(trace, diskBytes: Self.diskBytes, memoryBytes: 1 << 20, from: start)
        results.add(
            table, Self.disk,
            [
                .hitRatio: outcome.hitRatio * 100, .entries: Double(outcome.entries),
                .disk: Double(outcome.peakBytes) / Double(1 << 20), .writeRate: outcome.writesPerSecond,
            ])
        let capacity = Self.diskBytes / (DiskProbe.valueBytes + Keys.bytes(0).count)
        let simulators: [(String, any CacheSimulator)] = [
            ("FIFO of the same bytes", FIFOSimulator(capacity: capacity, universe: trace.universe)),
            (Self.leastRecent, LRUSimulator(capacity: capacity, universe: trace.universe)),
            ("optimum (Belady)", BeladySimulator(capacity: capacity, universe: trace.universe, trace: trace.keys)),
        ]
        for (name, simulator) in simulators {
            try Interruption.check()
            var simulator = simulator
            let ratio = simulator.hitRatio(trace.keys, from: start)
            results.add(table, name, [.hitRatio: ratio * 100, .entries: Double(simulator.count)])
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
