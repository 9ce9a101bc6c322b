import LarderLevelDB
import LarderLevelDBFormat
import LarderPlatform
import LarderTestSupport
import Testing

/// Tests of removing tables from a closed LevelDB that has older versions of keys, and removals of keys, in several
/// levels.
@Suite struct ManifestRemovalTests {
    private static let needed: [UInt8] = [0, 1]
    private static let note: [UInt8] = [0, 2]
    private static let record: UInt8 = 1

    /// Each key either has its newest value or is absent.
    @Test(arguments: 0..<8) func removingTablesRevivesNoOlderValue(run: UInt64) throws {
        var random = SeededGenerator(seed: testSeed() &+ run)
        let options = Options(compression: .none, writeBufferBytes: 64 << 10)
        let workspace = try Workspace(options)
        try workspace.database.put(Self.needed, [7])
        // Reopening writes the key into a table of its own.
        try workspace.reopen(options)
        var model: [[UInt8]: [UInt8]] = [:]
        var levels: Set<Int> = []
        for round in 0..<24 {
            for _ in 0..<random.below(300) { try write(workspace.database, &model, &random) }
            if random.oneIn(3) { try workspace.reopen(options) }
            if random.oneIn(6) { try workspace.database.compact(from: [Self.record], to: [Self.record] + key(200)) }
            try workspace.database.close()
            levels.formUnion(try remove(workspace.path, random.oneIn(4) ? 1 << 20 : random.below(200_000), &random))
            try workspace.reopen(options)
            #expect(try workspace.database.get(Self.needed) == [7], "round \(round)")
            for (key, newest) in model {
                let found = try workspace.database.get(key)
                #expect(found == nil || found == newest, "round \(round), \(key)")
                // If the key is absent now, removing more tables must not bring it back.
                model[key] = found ?? []
            }
        }
        #expect(levels.contains(0) && levels.count > 1)
    }

    private func write(
        _ database: Database, _ model: inout [[UInt8]: [UInt8]], _ random: inout SeededGenerator
    ) throws {
        let name = key(random.below(400))
        let stored = [Self.record] + name
        let batch = WriteBatch()
        if random.oneIn(5) {
            batch.delete(stored)
            model[stored] = []
        } else {
            let value = Incompressible.bytes(count: 1 + random.below(2400), &random)
            batch.put(stored, value)
            model[stored] = value
        }
        // Each table also has keys before and after the records.
        batch.put([Self.record + 1] + name, [1])
        if random.oneIn(20) { batch.put(Self.note, [1]) }
        try database.write(batch)
    }

    /// - Returns: the levels from which tables were removed.
    private func remove(_ path: String, _ most: Int, _ random: inout SeededGenerator) throws -> Set<Int> {
        let manifest = try #require(try ManifestScan.scan(directory: path))
        var bytes = 0
        let place = random.below(8)
        let gone = manifest.removable(
            from: [Self.record], before: [Self.record + 1], behind: Self.needed, start: { place % $0 },
            where: { group in
                guard bytes < most else { return false }
                bytes += group.reduce(0) { $0 + $1.table.byteCount }
                return true
            })
        try manifest.appendRemoval(of: gone.map(\.number), in: path)
        let left = try #require(try ManifestScan.scan(directory: path))
        #expect(Set(left.tables.keys) == Set(manifest.tables.keys).subtracting(gone.map(\.number)))
        return Set(gone.map(\.table.level))
    }
}
