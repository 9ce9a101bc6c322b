/// The latency of readers while another client writes at full speed, which causes compactions of LevelDB.
final class MixedSuite: Suite {
    static let table = "GET, 20 clients, 5000 a second, while another client writes 1 KiB values (pipeline 16)"
    private static let contenders = Contender.journaling + [.redisOff, .valkeyOff]

    private let options: BenchOptions
    private let tree: TemporaryTree

    init(_ options: BenchOptions, _ tree: TemporaryTree) {
        self.options = options
        self.tree = tree
    }

    func runRound(_ round: Int, into results: Results) throws(BenchError) {
        Progress.note("  \(Self.table)")
        for contender in Self.contenders.rotated(by: round) {
            try results.attempt("mixed", contender, options, tree) { (server) throws(BenchError) in
                try server.fill(count: Load.keyCount, valueBytes: 64)
                results.add(Self.table, contender.name, try measure(server))
            }
        }
    }

    private func measure(_ server: RunningServer) throws(BenchError) -> [Metric: Double] {
        // The writer uses other keys, so that the readers' values keep their size.
        var writes = Load.set(1024, clients: 1, pipeline: 16, keys: 200_000, order: .scattered)
        writes.firstKey = 1_000_000
        let writer = LoadTask(writes, server)
        // Start the writer first, so that it is busy during all reads.
        Clocks.sleep(0.5)
        var reads = Load.get(clients: 20).lasting(options.isQuick ? 2 : 10)
        reads.pacePerSecond = 5000
        let reading = Result { () throws(BenchError) in try LoadGenerator.run(reads, server) }
        let written = try writer.finish(now: true)
        let report = try reading.get()
        try written.check()
        try report.check()
        var figures = report.figures
        figures[.loadProcessor] = nil
        figures[.rate] = nil
        figures[.writeRate] = written.rate
        return figures
    }
}
