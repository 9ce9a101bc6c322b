/// A larderd in front of a redis-server, a valkey-server or a cluster, compared with direct requests: the CPU time of
/// all servers, and the latency of clients.
final class OriginSuite: Suite {
    static let firstReads = "every key once"
    static let known = "entries that it knows"
    static let direct = "asked directly"

    static func table(_ origin: RunningServer, pipeline: Int) -> String {
        "In front of \(origin.contender.name): GET of 100,000 entries of 64 B, 50 clients"
            + (pipeline == 1 ? "" : ", pipeline \(pipeline)")
    }

    static func writeTable(_ origin: RunningServer, pipeline: Int) -> String {
        "Through to \(origin.contender.name): SET of 100,000 entries of 64 B, 50 clients"
            + (pipeline == 1 ? "" : ", pipeline \(pipeline)")
    }

    static func clusterTable(pipeline: Int) -> String {
        "In front of a cluster of \(RunningCluster.nodeCount): GET of 100,000 entries of 64 B, 50 clients"
            + (pipeline == 1 ? "" : ", pipeline \(pipeline)")
    }

    static func changes(_ origin: RunningServer) -> String {
        "Changes at \(origin.contender.name): SET of 100,000 keys, 4 clients, pipeline 64"
    }
    static let tracked = "all of them known to a larderd"
    static let untracked = "nobody tracks"

    private let options: BenchOptions
    private let tree: TemporaryTree

    init(_ options: BenchOptions, _ tree: TemporaryTree) {
        self.options = options
        self.tree = tree
    }

    func runRound(_ round: Int, into results: Results) throws(BenchError) {
        for contender in [Contender.redisOff, .valkeyOff].rotated(by: round) {
            Progress.note("  a larderd in front of \(contender.name)")
            try results.attempt("in front of \(contender.name)") { () throws(BenchError) in
                let origin = try RunningServer(contender, options, directory: try tree.makeDirectory("origin"))
                defer { origin.stopAndRemove() }
                try origin.fill(count: Load.keyCount, valueBytes: 64)
                for pipeline in [1, 16] {
                    try measure(origin, pipeline, into: results)
                    try measureWrites(origin, pipeline, into: results)
                }
            }
        }
        try results.attempt("in front of a cluster") { () throws(BenchError) in
            let cluster = try RunningCluster(options, tree)
            defer { cluster.stopAndRemove() }
            try cluster.fill(valueBytes: 64)
            for pipeline in [1, 16] { try measure(cluster, pipeline, into: results) }
        }
    }

    /// Sends each request directly to the node that has the key, as real cluster clients do.
    private func measure(_ cluster: RunningCluster, _ pipeline: Int, into results: Results) throws(BenchError) {
        let table = Self.clusterTable(pipeline: pipeline)
        var reads = Load.get(pipeline: pipeline).lasting(options.secondsPerRun)
        results.add(
            table, Self.direct,
            try measure([], cluster.nodes) { () throws(BenchError) in
                try LoadGenerator(reads, parts: cluster.parts, dialect: .resp).run()
            })
        let larder = try RunningServer(.larderDefault, options, directory: try tree.makeDirectory("front"))
        defer { larder.stopAndRemove() }
        try Self.set(cluster.url, "THROUGH", for: larder)
        let known = reads
        reads.order = .scattered
        reads.limit = .requests(Load.keyCount)
        for (name, load) in [(Self.firstReads, reads), (Self.known, known)] {
            results.add(
                table, "larderd, \(name)",
                try measure([larder], cluster.nodes) { () throws(BenchError) in try LoadGenerator.run(load, larder) })
        }
    }

    /// Writes in the outbox are delivered before the servers are idle, so the figure includes the cost of the delivery.
    private func measureWrites(_ origin: RunningServer, _ pipeline: Int, into results: Results) throws(BenchError) {
        let table = Self.writeTable(origin, pipeline: pipeline)
        let writes = Load.set(pipeline: pipeline).lasting(options.secondsPerRun)
        results.add(table, Self.direct, try origin.measure(writes))
        for way in ["THROUGH", "BEHIND", "AROUND"] {
            let larder = try RunningServer(.larderDefault, options, directory: try tree.makeDirectory("front"))
            defer { larder.stopAndRemove() }
            try Self.set("unix://\(origin.socket)", way, for: larder)
            results.add(table, "larderd, \(way)", try measure(writes, larder, origin))
        }
    }

    private static func set(_ url: String, _ way: String, for larder: RunningServer) throws(BenchError) {
        let answer = try SocketClient(path: larder.socket).ask(["ORIGIN", url, way])
        guard answer == .simpleString("OK") else { throw BenchError("ORIGIN is answered with \(answer)") }
    }

    private func measure(_ origin: RunningServer, _ pipeline: Int, into results: Results) throws(BenchError) {
        let table = Self.table(origin, pipeline: pipeline)
        let larder = try RunningServer(.larderDefault, options, directory: try tree.makeDirectory("front"))
        defer { larder.stopAndRemove() }
        try Self.set("unix://\(origin.socket)", "THROUGH", for: larder)
        var reads = Load.get(pipeline: pipeline)
        results.add(table, Self.direct, try origin.measure(reads.lasting(options.secondsPerRun)))
        reads.order = .scattered
        reads.limit = .requests(Load.keyCount)
        results.add(table, "larderd, \(Self.firstReads)", try measure(reads, larder, origin))
        results.add(
            table, "larderd, \(Self.known)",
            try measure(Load.get(pipeline: pipeline).lasting(options.secondsPerRun), larder, origin))
        guard pipeline > 1 else { return }
        let writes = Load.fill(Load.keyCount, valueBytes: 64)
        results.add(Self.changes(origin), Self.tracked, try measure(writes, origin, larder))
        _ = try SocketClient(path: larder.socket).ask(["ORIGIN", "NONE"])
        results.add(Self.changes(origin), Self.untracked, try measure(writes, origin, larder))
    }

    private func measure(
        _ load: Load, _ server: RunningServer, _ other: RunningServer
    ) throws(BenchError) -> [Metric: Double] {
        try measure([server], [other]) { () throws(BenchError) in try LoadGenerator.run(load, server) }
    }

    /// Returns the figures of a load, with two CPU times: that of `servers`, which get the requests, and that of
    /// `others`.
    /// - Parameter servers: empty if the load goes to `others` directly.
    private func measure(
        _ servers: [RunningServer], _ others: [RunningServer], _ load: () throws(BenchError) -> LoadReport
    ) throws(BenchError) -> [Metric: Double] {
        let (outcome, otherUsage) = try others.usage { () throws(BenchError) in try servers.usage(of: load) }
        let (report, usage) = outcome
        try report.check()
        var figures = report.figures
        if !servers.isEmpty { figures = figures + usage.figures(operations: report.requests) }
        figures[.otherProcessor] = otherUsage.figures(operations: report.requests)[.processor]
        return figures
    }
}
