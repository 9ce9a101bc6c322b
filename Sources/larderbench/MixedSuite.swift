/// How long readers wait while another client writes at full speed, through LevelDB's compactions.
final class MixedSuite: Suite {
    static let table = "GET, 50 clients, pipeline 1, while another client writes 1 KiB values (pipeline 16)"
    private static let contenders: [Contender] = [.larderEverySecond, .redisOff, .redisEverySecond]

    private let options: BenchOptions
    private let tree: TemporaryTree

    init(_ options: BenchOptions, _ tree: TemporaryTree) {
        self.options = options
        self.tree = tree
    }

    func runRound(_ round: Int, into results: Results) throws(BenchError) {
        Progress.note("  \(Self.table)")
        for contender in Self.contenders {
            try Interruption.check()
            do throws(BenchError) {
                let server = try RunningServer(contender, options, directory: try tree.makeDirectory("m"))
                defer { server.stopAndRemove() }
                try server.fill(count: RedisBenchmark.keyCount, valueBytes: 64)
                results.add(Self.table, contender.name, try measure(server))
            } catch {
                try Interruption.check()
                results.fail("\(contender.name), mixed", error)
            }
        }
    }

    private func measure(_ server: RunningServer) throws(BenchError) -> [Metric: Double] {
        let writes = RedisBenchmark.Load(command: .set, valueBytes: 1024, clients: 1, pipeline: 16)
        // More requests than it can make in the time: it is stopped when the readers are done.
        let writer = try ChildProcess(
            RedisBenchmark.words(options, writes, socket: server.socket, requests: 1_000_000_000),
            outputPath: server.directory + ".writer")
        defer {
            writer.stop()
            unlink(writer.outputPath)
        }
        let reads = RedisBenchmark.Load(command: .get)
        let rate = try RedisBenchmark.run(options, reads, socket: server.socket, requests: 5_000).rate
        let requests = Int(max(rate * options.secondsPerRun * 2, 5_000))
        let report = try RedisBenchmark.run(options, reads, socket: server.socket, requests: requests)
        guard !writer.hasEnded else { throw BenchError("the writing client ended: \(writer.lastWords)") }
        return [.rate: report.rate, .p50: report.p50, .p99: report.p99, .longest: report.longest]
    }
}
