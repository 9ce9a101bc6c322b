import LarderPlatform

/// Stores more and more entries, most of which do not fit into a memory tier of 64 MiB, and reads them: how time,
/// pauses and memory grow with the number of entries.
final class ScaleSuite: Suite {
    /// A figure, in a table with a column for each number of entries.
    enum Figure: String, CaseIterable {
        case set = "SET of every key once, CPU µs"
        case setWall = "SET of every key once, elapsed µs"
        case longest = "longest wait for a SET, ms"
        case get = "GET of any key, CPU µs"
        case getWall = "GET of any key, elapsed µs"
        case zipf = "GET with a Zipf distribution (1.0), CPU µs"
        case resident = "resident MiB"
        case own = "resident MiB without mapped files"
        case perEntry = "resident bytes without mapped files, for each entry more than in the previous column"
        case disk = "disk MiB"

        var table: String { "Scale, 64 B, random order, 50 clients, pipeline 16: \(rawValue)" }
    }

    static let larder = Contender.larder(memory: "64M").with(nil, ["--max-disk", "0"])
    private static let contenders = [larder, .redisEverySecond, .valkeyEverySecond]
    /// The memory that a server without a disk needs for an entry, approximately.
    private static let bytesPerEntry = 200.0

    private let options: BenchOptions
    private let tree: TemporaryTree

    init(_ options: BenchOptions, _ tree: TemporaryTree) {
        self.options = options
        self.tree = tree
    }

    func runRound(_ round: Int, into results: Results) throws(BenchError) {
        for contender in Self.contenders.rotated(by: round) {
            var previous: (count: Int, own: Double)?
            for count in options.countsOfScale {
                Progress.note("  \(count) entries, \(contender.name)")
                try results.attempt("\(contender.name), \(count) entries") { () throws(BenchError) in
                    try checkMemory(contender, count)
                    var figures = try measure(contender, count, UInt64(round + 1))
                    if let previous, let own = figures[.own] {
                        figures[.perEntry] = (own - previous.own) * 1_048_576 / Double(count - previous.count)
                    }
                    previous = figures[.own].map { (count, $0) }
                    for figure in Figure.allCases {
                        guard let value = figures[figure] else { continue }
                        results.add(figure.table, contender.name, [.entries(count): value])
                    }
                }
            }
        }
    }

    private func checkMemory(_ contender: Contender, _ count: Int) throws(BenchError) {
        let half = Double(MachineMemory.bytes) / 2
        guard contender.program == .larderd || Double(count) * Self.bytesPerEntry < half else {
            throw BenchError("keeps all entries in memory, which would take more than half of it")
        }
    }

    private func measure(_ contender: Contender, _ count: Int, _ seed: UInt64) throws(BenchError) -> [Figure: Double] {
        let server = try RunningServer(contender, options, directory: try tree.makeDirectory("scale"))
        defer { server.stopAndRemove() }
        var sets = Load.set(pipeline: 16, keys: count, order: .scattered)
        sets.limit = .requests(count)
        let stored = try server.measure(sets)
        var reads = Load.get(pipeline: 16, keys: count).lasting(options.secondsPerRun * 5)
        // The first reads, which open Larder's tables, are not measured.
        reads.seed = ~seed
        try LoadGenerator.run(reads, server).check()
        reads.seed = seed
        let read = try server.measure(reads)
        try server.settleMemory()
        let (resident, own) = (server.residentMiB, server.ownMiB)
        reads.order = .zipf(exponent: 1)
        var figures: [Figure: Double] = [:]
        figures[.set] = stored[.processor]
        figures[.setWall] = stored[.rate].map { 1e6 / $0 }
        figures[.longest] = stored[.longest]
        figures[.get] = read[.processor]
        figures[.getWall] = read[.rate].map { 1e6 / $0 }
        figures[.zipf] = try server.measure(reads)[.processor]
        figures[.resident] = resident
        figures[.own] = own
        figures[.disk] = server.diskMiB
        return figures
    }
}
