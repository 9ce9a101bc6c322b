import LarderLevelDB
import LarderTestSupport
import Testing

/// Makes random calls on the database and on a dictionary, and compares the results. In between, uses snapshots and
/// cursors, compacts and reopens. Repeats this with several sets of options. A failure's message contains the seed.
@Suite struct ModelTests {
    let workspace: Workspace

    init() throws { workspace = try Workspace() }

    static let configurations: [(Options, UInt64)] = [
        (Options(writeBufferBytes: 64 << 10, blockBytes: 1024), 1),
        (Options(compression: .none, bloomBitsPerKey: 10, writeBufferBytes: 64 << 10, maxFileBytes: 1 << 20), 2),
        (Options(blockCache: BlockCache(bytes: 0), blockRestartInterval: 1), 3),
        (
            Options(paranoidChecks: true, bloomBitsPerKey: 1, writeBufferBytes: 64 << 10, maxOpenFiles: 74),
            TestSetting.seed.number(UInt64.self) ?? .random(in: 4 ... .max)
        ),
    ]

    @Test(arguments: configurations) func theDatabaseAgreesWithADictionary(options: Options, seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        var database = try workspace.open("model", options)
        var model: [[UInt8]: [UInt8]] = [:]
        var frozen: [(Snapshot, [[UInt8]: [UInt8]])] = []
        for step in 0..<3000 {
            let place: Comment = "seed \(seed), step \(step)"
            switch random.below(100) {
            case ..<40:
                let (key, value) = (random.key(), random.bytes(count: random.below(200)))
                try database.put(key, value)
                model[key] = value
            case ..<50:
                let key = random.key()
                try database.delete(key)
                model[key] = nil
            case ..<60:
                try writeBatch(database, &model, &random)
            case ..<85:
                let key = random.key()
                #expect(try database.get(key) == model[key], place)
            case ..<90:
                try compare(database, ReadOptions(), model, &random, place)
            case ..<94:
                if frozen.count < 4 { frozen.append((try database.snapshot(), model)) }
            case ..<98:
                guard !frozen.isEmpty else { continue }
                let (snapshot, then) = frozen.remove(at: random.below(frozen.count))
                try compare(database, ReadOptions(snapshot: snapshot), then, &random, place)
            case 98:
                try database.compact(from: random.key(), to: nil)
            default:
                frozen = []
                try database.close()
                database = try Database(path: database.path, options: options)
            }
        }
        try compare(database, ReadOptions(), model, &random, "seed \(seed), end")
    }

    private func writeBatch(
        _ database: Database, _ model: inout [[UInt8]: [UInt8]], _ random: inout SeededGenerator
    ) throws {
        let batch = WriteBatch()
        for _ in 0..<random.below(20) {
            let key = random.key()
            if random.below(2) == 0 {
                let value = random.bytes(count: random.below(500))
                batch.put(key, value)
                model[key] = value
            } else {
                batch.delete(key)
                model[key] = nil
            }
        }
        try database.write(batch)
    }

    /// Walks all keys of a random prefix, both ways, and seeks once each way.
    private func compare(
        _ database: Database, _ options: ReadOptions, _ model: [[UInt8]: [UInt8]], _ random: inout SeededGenerator,
        _ place: Comment
    ) throws {
        let prefix = [UInt8](random.key().prefix(random.below(3)))
        let expected = model.keys.filter { $0.starts(with: prefix) }.sorted { $0.lexicographicallyPrecedes($1) }
        let cursor = try database.cursor(options, prefix: prefix)
        try cursor.seekToFirst()
        #expect(try keys(cursor) == expected, place)
        try cursor.seekToLast()
        #expect(try keys(cursor, backward: true) == expected.reversed(), place)
        let target = random.key()
        try cursor.seek(to: target)
        #expect((cursor.isValid ? cursor.key : nil) == expected.first { !$0.lexicographicallyPrecedes(target) }, place)
        #expect((cursor.isValid ? cursor.value : nil) == (cursor.isValid ? model[cursor.key] : nil), place)
        try cursor.seekBackward(to: target)
        #expect((cursor.isValid ? cursor.key : nil) == expected.last { !target.lexicographicallyPrecedes($0) }, place)
    }
}

extension SeededGenerator {
    /// One of a few hundred keys, with many common prefixes and 0xFF bytes.
    fileprivate mutating func key() -> [UInt8] {
        let alphabet: [UInt8] = [0x00, 0x61, 0xfe, 0xff]
        return (0..<below(6)).map { _ in alphabet[below(alphabet.count)] }
    }
}
