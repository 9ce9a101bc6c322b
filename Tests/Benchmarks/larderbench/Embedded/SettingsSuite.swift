import LarderEngine
import LarderPlatform

/// The costs and benefits of LevelDB's settings when it is used with the journal. Each run changes one setting from
/// larderd's value.
///
/// Entries of 100 B are stored in random order in groups of 100, then all are stored a second time. After the larder
/// was reopened, they are read in random order, without memory for hot entries.
final class SettingsSuite: Suite {
    static let writes = "Settings: put in groups of 100, deferred work included"
    static let reads = "Settings: get, cold"
    static let absents = "Settings: get of absent keys"
    static let standard = "larderd's settings"

    private struct Setting: Sendable {
        let name: String
        let change: @Sendable (inout EngineOptions) -> Void
    }

    private static let settings: [Setting] = [
        Setting(name: standard) { _ in },
        Setting(name: "write buffer 1 MiB") { $0.writeBufferBytes = 1 << 20 },
        Setting(name: "write buffer 16 MiB") { $0.writeBufferBytes = 16 << 20 },
        Setting(name: "write buffer 64 MiB") { $0.writeBufferBytes = 64 << 20 },
        Setting(name: "blocks of 2 KiB") { $0.blockBytes = 2048 },
        Setting(name: "blocks of 16 KiB") { $0.blockBytes = 16_384 },
        Setting(name: "no Bloom filter") { $0.bloomBitsPerKey = 0 },
        Setting(name: "Bloom filter of 16 bits") { $0.bloomBitsPerKey = 16 },
        Setting(name: "block cache 8 MiB") { $0.blockCacheBytes = 8 << 20 },
        Setting(name: "block cache 128 MiB") { $0.blockCacheBytes = 128 << 20 },
        Setting(name: "no compression") { $0.compression = false },
        Setting(name: "checkpoints of 16 MiB") { $0.checkpointBytes = 16 << 20 },
        Setting(name: "checkpoints of 256 MiB") { $0.checkpointBytes = 256 << 20 },
    ]

    private static let count = 500_000
    private static let readCount = 100_000
    private static let valueBytes = 100

    private let options: BenchOptions
    private let tree: TemporaryTree
    private let values = Values(bytes: valueBytes)
    private let order: [Int]

    init(_ options: BenchOptions, _ tree: TemporaryTree) {
        self.options = options
        self.tree = tree
        var generator = SplitMix(seed: 11)
        order = (0..<Self.count).shuffled(using: &generator)
    }

    func runRound(_ round: Int, into results: Results) throws(BenchError) {
        for setting in Self.settings.rotated(by: round) {
            Progress.note("  settings: \(setting.name)")
            try results.attempt(setting.name) { () throws(BenchError) in
                let directory = try tree.makeDirectory("settings")
                defer { TemporaryTree.remove(directory) }
                do {
                    try measure(setting, directory, into: results)
                } catch {
                    throw BenchError("\(error)")
                }
            }
        }
    }

    private func measure(_ setting: Setting, _ directory: String, into results: Results) throws {
        var engineOptions = EngineOptions()
        engineOptions.memoryBytes = 256 << 20
        setting.change(&engineOptions)
        var engine = try Engine.open(directory, options: engineOptions)
        let writer = engine
        var figures = try Stopwatch.measure(operations: 2 * Self.count, writeOut: writer.shutdown) {
            let database = try writer.openDatabase("bench", policy: .never)
            for _ in 0..<2 { try put(database) }
        }
        figures[.disk] = Double(TemporaryTree.diskBytes(directory)) / 1_048_576
        results.add(Self.writes, setting.name, figures)

        engineOptions.memoryBytes = 0
        engine = try Engine.open(directory, options: engineOptions)
        defer { engine.shutdown() }
        let database = try engine.openDatabase("bench", policy: .never)
        results.add(Self.reads, setting.name, try read(database, behindKeys: []))
        // Absent keys sort between existing ones, so that no table can be excluded by its range.
        results.add(Self.absents, setting.name, try read(database, behindKeys: [0x2D]))
    }

    private func put(_ database: Database) throws {
        for indices in order.chunks(of: 100) {
            try Interruption.check()
            try database.commit(indices.map { Key(Keys.bytes($0)) }, loading: .none) { update in
                for (position, index) in indices.enumerated() {
                    values.withValue(index) { update.put(position, payload: $0) }
                }
            }
        }
    }

    /// - Parameter suffix: appended to each key. If it is not empty, the keys are absent.
    private func read(_ database: Database, behindKeys suffix: [UInt8]) throws -> [Metric: Double] {
        try Stopwatch.measure(operations: Self.readCount) {
            for index in order.prefix(Self.readCount) {
                let isThere = try database.get(Key(Keys.bytes(index) + suffix)) != nil
                guard isThere == suffix.isEmpty else { throw BenchError("\(Keys.text(index)) is wrong") }
            }
        }
    }
}
