/// Memory of a million entries: for each entry, and compared with larderd's option `--memory`.
final class MemorySuite: Suite {
    static let table = "Memory and disk with 1,000,000 entries of 100 B"
    /// larderd with memory tiers that are too small for all entries.
    static let larder = Contender.larder(memory: "64M")
    private static let tiers: [(Contender, Double?)] = [(larder, 64), (.larder(memory: "128M"), 128)]

    static let entryTable = "Resident bytes per entry, without mapped files, beyond its key (16 B) and its value"
    /// larderd with a memory tier for all entries.
    static let all = Contender.larder(memory: "4G")
    static let valueSizes = [16, 64, 200]

    private let options: BenchOptions
    private let tree: TemporaryTree
    private let count: Int

    init(_ options: BenchOptions, _ tree: TemporaryTree, count: Int = 1_000_000) {
        self.options = options
        self.tree = tree
        self.count = count
    }

    static func afterFilling(_ contender: Contender) -> String { contender.name + ", after filling" }
    static func afterReading(_ contender: Contender) -> String { contender.name + ", after as many random GETs" }
    static func row(_ contender: Contender, deadlines: Bool) -> String { row(contender.name, deadlines: deadlines) }
    static func row(_ name: String, deadlines: Bool) -> String { name + (deadlines ? ", with deadlines" : "") }
    static func column(_ valueBytes: Int) -> Metric { .at(valueBytes, "\(valueBytes) B") }

    func runRound(_ round: Int, into results: Results) throws(BenchError) {
        Progress.note("  \(Self.entryTable)")
        for contender in [Self.all, .redisOff, .valkeyOff, .memcached].rotated(by: round) {
            for deadlines in [false, true] {
                for valueBytes in Self.valueSizes {
                    let row = Self.row(contender, deadlines: deadlines)
                    try results.attempt("\(row), memory") { () throws(BenchError) in
                        let bytes = try bytesPerEntry(contender, valueBytes, deadlines: deadlines)
                        results.add(Self.entryTable, row, [Self.column(valueBytes): bytes])
                    }
                }
            }
        }
        for deadlines in [false, true] {
            for valueBytes in Self.valueSizes {
                let row = Self.row(LibraryMemory.subject, deadlines: deadlines)
                try results.attempt("\(row), memory") { () throws(BenchError) in
                    let directory = try tree.makeDirectory("memory")
                    defer { TemporaryTree.remove(directory) }
                    let bytes = try LibraryMemory(
                        directory: directory, count: count, valueBytes: valueBytes, hasDeadlines: deadlines
                    ).bytesPerEntry(options.program)
                    results.add(Self.entryTable, row, [Self.column(valueBytes): bytes])
                }
            }
        }
        Progress.note("  \(Self.table)")
        let others: [Contender] = [.redisOff, .valkeyOff] + (options.isQuick ? [] : [.redisEverySecond, .memcached])
        for (contender, limit) in (Self.tiers + others.map { ($0, nil) }).rotated(by: round) {
            try results.attempt("\(contender.name), memory") { () throws(BenchError) in
                try measureTier(contender, limit, into: results)
            }
        }
    }

    private func bytesPerEntry(
        _ contender: Contender, _ valueBytes: Int, deadlines: Bool
    ) throws(BenchError) -> Double {
        let server = try RunningServer(contender, options, directory: try tree.makeDirectory("memory"))
        defer { server.stopAndRemove() }
        server.settle()
        let empty = server.ownMiB ?? .nan
        try server.fill(
            count: count, valueBytes: valueBytes, lifetimeMilliseconds: deadlines ? 86_400_000 : nil)
        try server.checkCount(count)
        try server.settleMemory()
        let grown = ((server.ownMiB ?? .nan) - empty) * 1_048_576
        return grown / Double(count) - Double(Keys.byteCount + valueBytes)
    }

    /// - Parameter limit: larderd's `--memory`, in MiB.
    private func measureTier(_ contender: Contender, _ limit: Double?, into results: Results) throws(BenchError) {
        let server = try RunningServer(contender, options, directory: try tree.makeDirectory("memory"))
        defer { server.stopAndRemove() }
        func add(_ row: String) {
            var figures = server.space
            figures[.own] = server.ownMiB
            figures[.ownShare] = limit.flatMap { limit in server.ownMiB.map { $0 / limit } }
            results.add(Self.table, row, figures)
        }
        try server.fill(count: count, valueBytes: 100)
        try server.checkCount(count)
        try server.settleMemory()
        add(Self.afterFilling(contender))
        var reads = Load.get(100, pipeline: 16, keys: count)
        reads.limit = .requests(count)
        try LoadGenerator.run(reads, server).check()
        try server.settleMemory()
        add(Self.afterReading(contender))
    }
}
