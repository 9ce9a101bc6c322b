/// Memory and disk space of a million entries.
final class MemorySuite: Suite {
    static let table = "Memory and disk with 1,000,000 entries of 100 B"
    static let larder = Contender.larder(memory: "64M")
    private static let count = 1_000_000

    private let options: BenchOptions
    private let tree: TemporaryTree

    init(_ options: BenchOptions, _ tree: TemporaryTree) {
        self.options = options
        self.tree = tree
    }

    private var contenders: [Contender] {
        let pair = [Self.larder, .redisOff]
        return options.isQuick ? pair : pair + [.redisEverySecond, .memcached]
    }

    static func afterFilling(_ contender: Contender) -> String { contender.name + ", after filling" }
    static func afterReading(_ contender: Contender) -> String { contender.name + ", after 1,000,000 random GETs" }

    func runRound(_ round: Int, into results: Results) throws(BenchError) {
        Progress.note("  \(Self.table)")
        for contender in contenders.rotated(by: round) {
            try results.attempt("\(contender.name), memory") { () throws(BenchError) in
                let server = try RunningServer(contender, options, directory: try tree.makeDirectory("memory"))
                defer { server.stopAndRemove() }
                try server.fill(count: Self.count, valueBytes: 100)
                try server.checkCount(Self.count)
                results.add(Self.table, Self.afterFilling(contender), space(server))
                var reads = Load.get(100, pipeline: 16, keys: Self.count)
                reads.limit = .requests(Self.count)
                try LoadGenerator.run(reads, server).check()
                server.settle()
                results.add(Self.table, Self.afterReading(contender), space(server))
            }
        }
    }

    private func space(_ server: RunningServer) -> [Metric: Double] {
        [.resident: server.residentMiB ?? .nan, .disk: server.diskMiB]
    }
}
