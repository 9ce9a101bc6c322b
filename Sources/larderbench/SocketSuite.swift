/// SET and GET over a Unix-domain socket, Larder beside redis-server.
///
/// All servers of a round run at the same time with files of their own; they are measured one after the other, load by
/// load, so that what disturbs the machine for a while disturbs them alike.
final class SocketSuite: Suite {
    static let spaceTable = "Space with 100,000 entries of 64 B, after filling"

    private struct Case {
        let load: RedisBenchmark.Load
        let contenders: [Contender]
    }

    private let options: BenchOptions
    private let tree: TemporaryTree
    /// Operations per second as measured last, which say how many requests the next run makes.
    private var rates: [String: Double] = [:]

    init(_ options: BenchOptions, _ tree: TemporaryTree) {
        self.options = options
        self.tree = tree
    }

    private static let all: [Contender] = [
        .larderOS, .larderEverySecond, .larderDefault, .larderCold, .larderThreads, .larderAlways, .redisOff,
        .redisEverySecond, .redisAlways,
    ]

    /// Reading waits for no disk, so that GET is measured without the variants that differ only there.
    private static let readers: [Contender] = [
        .larderEverySecond, .larderDefault, .larderCold, .larderThreads, .redisOff, .redisEverySecond,
    ]

    /// GET before SET, while the tables are as filling left them.
    private func cases(valueBytes: Int) -> [Case] {
        typealias Load = RedisBenchmark.Load
        var result: [Case] = []
        for (command, contenders) in [(RedisBenchmark.Command.get, Self.readers), (.set, Self.all)] {
            for pipeline in valueBytes == 64 ? [1, 16, 64] : [16] {
                result.append(
                    Case(
                        load: Load(command: command, valueBytes: valueBytes, pipeline: pipeline), contenders: contenders
                    ))
            }
            if valueBytes == 64, !options.isQuick {
                result.append(Case(load: Load(command: command, clients: 1), contenders: contenders))
            }
        }
        return result
    }

    func runRound(_ round: Int, into results: Results) throws(BenchError) {
        for valueBytes in options.isQuick ? [64] : [64, 1024] {
            try runRound(round, valueBytes: valueBytes, into: results)
        }
    }

    private func runRound(_ round: Int, valueBytes: Int, into results: Results) throws(BenchError) {
        var servers: [String: RunningServer] = [:]
        defer { for server in servers.values { server.stopAndRemove() } }
        for (position, contender) in Self.all.enumerated() {
            do throws(BenchError) {
                let server = try RunningServer(contender, options, directory: try tree.makeDirectory("s\(position)"))
                servers[contender.name] = server
                try server.fill(count: RedisBenchmark.keyCount, valueBytes: valueBytes)
                if valueBytes == 64 {
                    results.add(
                        Self.spaceTable, contender.name,
                        [.resident: server.residentMiB ?? .nan, .disk: server.diskMiB])
                }
            } catch {
                try Interruption.check()
                results.fail(contender.name, error)
                servers[contender.name] = nil
            }
        }
        for item in cases(valueBytes: valueBytes) {
            Progress.note("  \(item.load.title)")
            // Another order in every round: nobody is always the one who runs after a certain other.
            let shift = round % item.contenders.count
            for contender in item.contenders[shift...] + item.contenders[..<shift] {
                try Interruption.check()
                guard let server = servers[contender.name] else { continue }
                do throws(BenchError) {
                    results.add(item.load.title, contender.name, try measure(item.load, server))
                } catch {
                    try Interruption.check()
                    results.fail("\(contender.name), \(item.load.title)", error)
                }
            }
        }
    }

    private func measure(_ load: RedisBenchmark.Load, _ server: RunningServer) throws(BenchError) -> [Metric: Double] {
        let key = server.contender.name + load.title
        if rates[key] == nil {
            // A first short run says how fast it goes, and warms up.
            rates[key] = try RedisBenchmark.run(options, load, socket: server.socket, requests: 5_000).rate
        }
        let wanted = (rates[key] ?? 0) * options.secondsPerRun
        let requests = Int(min(max(wanted, 5_000), 20_000_000))
        server.settle()
        guard let before = server.processorSeconds else { throw BenchError("the server is gone") }
        let report = try RedisBenchmark.run(options, load, socket: server.socket, requests: requests)
        server.settle()
        guard let after = server.processorSeconds else { throw BenchError("the server is gone") }
        rates[key] = report.rate
        return [
            .processor: (after - before) * 1e6 / Double(requests), .rate: report.rate, .p50: report.p50,
            .p99: report.p99, .longest: report.longest,
        ]
    }
}
