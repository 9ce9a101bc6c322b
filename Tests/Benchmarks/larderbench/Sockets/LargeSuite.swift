/// Stores far more entries than fit in the memory tier. Then reads them, first all equally often, then with a skewed
/// distribution.
final class LargeSuite: Suite {
    private static let larder = Contender.larder(memory: "128M")
    private static let contenders: [Contender] = [larder, .redisEverySecond]

    private let options: BenchOptions
    private let tree: TemporaryTree

    init(_ options: BenchOptions, _ tree: TemporaryTree) {
        self.options = options
        self.tree = tree
    }

    static let larderName = larder.name

    static func table(_ options: BenchOptions, _ what: String) -> String {
        "\(options.largeCount) entries of 64 B, 50 clients, pipeline 16: \(what)"
    }

    static func setTable(_ options: BenchOptions) -> String { table(options, "SET, every key once") }
    static func evenTable(_ options: BenchOptions) -> String { table(options, "GET, all keys alike") }
    static func zipfTable(_ options: BenchOptions) -> String { table(options, "GET, Zipf 1.0") }

    func runRound(_ round: Int, into results: Results) throws(BenchError) {
        for contender in Self.contenders.rotated(by: round) {
            Progress.note("  \(options.largeCount) entries, \(contender.name)")
            try results.attempt("\(contender.name), \(options.largeCount) entries") { () throws(BenchError) in
                let server = try RunningServer(contender, options, directory: try tree.makeDirectory("large"))
                defer { server.stopAndRemove() }
                var sets = Load.set(pipeline: 16, keys: options.largeCount, order: .scattered)
                sets.limit = .requests(options.largeCount)
                results.add(Self.setTable(options), contender.name, try server.measure(sets) + space(server))
                var reads = Load.get(pipeline: 16, keys: options.largeCount).lasting(options.secondsPerRun * 5)
                reads.seed = UInt64(round + 1)
                results.add(Self.evenTable(options), contender.name, try server.measure(reads) + space(server))
                reads.order = .zipf(exponent: 1)
                results.add(Self.zipfTable(options), contender.name, try server.measure(reads) + space(server))
            }
        }
    }

    private func space(_ server: RunningServer) -> [Metric: Double] {
        [.resident: server.residentMiB ?? .nan, .disk: server.diskMiB]
    }
}

extension [Metric: Double] {
    static func + (first: Self, second: Self) -> Self { first.merging(second) { $1 } }
}
