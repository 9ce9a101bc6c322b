import LarderLevelDB
import LarderLevelDBFormat
import LarderPlatform
import LarderTestSupport
import Testing

@testable import LarderEngine

/// Tests that open databases adopt changed disk limits, which determine the size of LevelDB's tables.
@Suite struct FollowedLimitTests {
    private func fill(_ database: LarderEngine.Database) throws -> Int {
        for number in 0..<500 {
            var random = SeededGenerator(seed: UInt64(number))
            let value = Incompressible.bytes(count: 20_000, &random)
            try database.commit([Key("key:\(number)")], loading: .none) { update in
                value.withUnsafeBytes { update.put(0, payload: $0) }
            }
        }
        let flushed = try database.flushedStore()
        let store = try #require(flushed)
        try store.compactAll()
        let scan = try ManifestScan.scan(directory: store.path)
        let manifest = try #require(scan)
        return Int(manifest.tables.values.map(\.byteCount).max() ?? 0)
    }

    @Test func aNewDiskLimitChangesTheTableSizeOfOpenDatabases() throws {
        let larder = try TestLarder { $0.memoryBytes = 1 << 20 }
        let database = try larder.database(policy: .never)
        #expect(try fill(database) > 3 << 19)
        let snapshot = try database.snapshot()
        try larder.engine().changeDiskLimit(to: 64 << 20)
        // The database is not reopened while a snapshot is open, because reopening would invalidate the snapshot.
        try larder.maintain()
        #expect(!larder.events.contains("to fit its tables to the disk limits"))
        #expect(try snapshot.get(Key("key:1")) != nil)
        snapshot.close()
        try larder.maintain()
        #expect(larder.events.contains("to fit its tables to the disk limits"))
        #expect(try fill(database) < 5 << 18)
        try larder.engine().changeDiskLimit(to: nil)
        try larder.maintain()
        #expect(try fill(database) > 3 << 19)
        // A limit of the database itself has the same effect.
        try database.setDiskLimit(64 << 20)
        try larder.maintain()
        #expect(try fill(database) < 5 << 18)
        for number in 0..<500 { #expect(try database.get(Key("key:\(number)"))?.payload.count == 20_000) }
        larder.close()
        #expect(try larder.database().get(Key("key:499"))?.payload.count == 20_000)
        #expect(larder.setAside.isEmpty)
    }
}
