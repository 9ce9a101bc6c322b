import LarderPlatform

/// Measures put and get inside one process: with LevelDB's C functions, with each layer of Larder above them, with
/// SQLite, and with diskcache in a Python process.
///
/// Stores are closed and reopened between writing and reading. So the first pass reads everything from tables, and the
/// second pass reads from the data that the store keeps in memory. See `EmbeddedSuite+Reading`.
final class EmbeddedSuite: Suite {
    enum Operation: String, CaseIterable {
        case put = "put one by one"
        case batch100 = "put in batches of 100"
        case batch1000 = "put in batches of 1000"
        case firstGet = "get, first time after opening"
        case get = "get, second time"
        case getAbsent = "get of absent keys"
    }

    static let raw = "LevelDB C"
    static let module = "LevelDB module"
    static let cold = "LarderEngine without memory tier"
    static let engine = "LarderEngine with memory tier"
    static let cache = "Larder Cache, bytes, memory tier"
    static let sqlite = "SQLite, WAL, synchronous=NORMAL"

    static func sizes(_ options: BenchOptions) -> [Int] { options.isQuick ? [100] : [100, 1024] }

    /// Separate writes that are committed as one group.
    static func grouped(_ subject: String) -> String { subject + ", single writes, grouped" }

    static func table(_ operation: Operation, _ valueBytes: Int) -> String {
        "Embedded: \(operation.rawValue), \(valueBytes) B"
    }

    private let options: BenchOptions
    private let tree: TemporaryTree
    let order: [Int]

    init(_ options: BenchOptions, _ tree: TemporaryTree) {
        self.options = options
        self.tree = tree
        var generator = SplitMix(seed: 7)
        order = (0..<Entries.count).shuffled(using: &generator)
    }

    func runRound(_ round: Int, into results: Results) throws(BenchError) {
        for valueBytes in Self.sizes(options) {
            Progress.note("  embedded, \(valueBytes) B")
            let entries = Entries(valueBytes: valueBytes)
            let makers: [(String, (String) throws -> any EmbeddedStore)] = [
                (Self.raw, { try RawStore($0, entries) }),
                (Self.module, { try ModuleStore($0, entries) }),
                (Self.cold, { try EngineStore($0, entries, memoryBytes: 0) }),
                (Self.engine, { try EngineStore($0, entries, memoryBytes: StoreOptions.memoryBytes) }),
                (Self.cache, { try CacheStore($0, entries) }),
                (Self.sqlite, { try SQLiteStore($0, entries) }),
            ]
            var written: [Written] = []
            defer { for store in written { TemporaryTree.remove(store.directory) } }
            for (name, make) in makers.rotated(by: round) {
                try results.attempt("\(name), \(valueBytes) B") { () throws(BenchError) in
                    let directory = try tree.makeDirectory("embedded\(written.count)")
                    written.append(Written(name: name, directory: directory, make: make))
                    do {
                        try measureWriting(name, try make(directory), valueBytes, into: results)
                    } catch {
                        written.removeLast()
                        TemporaryTree.remove(directory)
                        throw BenchError("\(error)")
                    }
                }
            }
            try results.attempt("get, \(valueBytes) B") { () throws(BenchError) in
                do {
                    try measureReading(written, valueBytes, into: results)
                } catch {
                    throw BenchError("\(error)")
                }
            }
            try results.attempt("\(Diskcache.name), \(valueBytes) B") { () throws(BenchError) in
                let directory = try tree.makeDirectory("diskcache")
                defer { TemporaryTree.remove(directory) }
                for (operation, figures) in try Diskcache.measure(
                    options, directory: directory, valueBytes: valueBytes)
                {
                    results.add(Self.table(operation, valueBytes), Diskcache.name, figures)
                }
            }
        }
    }

    private func measureWriting(
        _ name: String, _ store: any EmbeddedStore, _ valueBytes: Int, into results: Results
    ) throws {
        for operation in [Operation.put, .batch100, .batch1000] {
            try measure(operation, name, store, valueBytes, into: results)
        }
        if let engine = store as? EngineStore {
            let figures = try Stopwatch.measure(operations: order.count, writeOut: engine.writeOut) {
                for indices in order.chunks(of: 1000) { try engine.putGroup(indices) }
            }
            results.add(Self.table(.batch1000, valueBytes), Self.grouped(name), figures)
        }
        try store.close()
    }

    private func measure(
        _ operation: Operation, _ name: String, _ store: any EmbeddedStore, _ valueBytes: Int, into results: Results
    ) throws {
        try Interruption.check()
        let figures = try Stopwatch.measure(operations: order.count, writeOut: store.writeOut) {
            try run(operation, store)
        }
        results.add(Self.table(operation, valueBytes), name, figures)
    }

    private func run(_ operation: Operation, _ store: any EmbeddedStore) throws {
        switch operation {
        case .put: for index in order { try store.put(index) }
        case .batch100: for indices in order.chunks(of: 100) { try store.putBatch(indices) }
        case .batch1000: for indices in order.chunks(of: 1000) { try store.putBatch(indices) }
        case .firstGet, .get, .getAbsent: try Self.read(operation, order[...], store)
        }
    }
}

extension [Int] {
    func chunks(of size: Int) -> [ArraySlice<Int>] {
        stride(from: 0, to: count, by: size).map { self[$0..<Swift.min($0 + size, count)] }
    }
}
