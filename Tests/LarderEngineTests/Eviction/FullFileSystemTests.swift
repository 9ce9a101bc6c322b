import LarderPlatform
import LarderTestSupport
import Testing

@testable import LarderEngine

/// Tests of a larder on a file system that is smaller than the disk limit, or that other programs fill. Without
/// background threads, writers run all checkpoints.
@Suite(.enabled(if: SmallDisk.isPossible, "mounting a small file system needs root")) struct FullFileSystemTests {
    static let diskBytes = 64 << 20
    static let valueBytes = 20_000

    func larder(_ disk: SmallDisk, limit: Int? = 1 << 30) throws -> TestLarder {
        try TestLarder(below: disk.path) {
            $0.diskBytesMax = limit
            $0.memoryBytes = 1 << 20
            $0.checkpointBytes = 2 << 20
        }
    }

    func value(_ number: Int) -> [UInt8] {
        var random = SeededGenerator(seed: UInt64(number))
        return Incompressible.bytes(count: Self.valueBytes, &random)
    }

    func put(_ database: Database, _ number: Int) throws {
        try database.commit([Key("key:\(number)")], loading: .none) { update in
            value(number).withUnsafeBytes { update.put(0, payload: $0) }
        }
    }

    /// Checks that each existing entry has its last stored value, and returns their number.
    func check(_ database: Database, _ keys: Range<Int>) throws -> Int {
        var found = 0
        for number in keys {
            guard let payload = try database.get(Key("key:\(number)"))?.payload else { continue }
            // Uses memcmp, because comparing arrays takes a hundred times as long in unoptimized builds.
            let isEqual = value(number).withUnsafeBytes { expected in
                payload.withUnsafeBytes { found in
                    found.count == expected.count && memcmp(found.baseAddress!, expected.baseAddress!, found.count) == 0
                }
            }
            #expect(isEqual, "key:\(number)")
            found += 1
        }
        return found
    }

    @Test("a check on a full file system reports what to do")
    func aCheckNeedsRoomForItsCopy() throws {
        let disk = try SmallDisk(bytes: Self.diskBytes)
        let larder = try larder(disk, limit: nil)
        let database = try larder.database(policy: .never)
        for number in 0..<20 { try put(database, number) }
        disk.fill(leaving: 0)
        var message = ""
        do {
            _ = try larder.engine().check(copying: [])
        } catch let error as LarderError {
            message = error.message
            #expect((error.underlying as? FileError)?.isFullDisk == true)
        }
        #expect(message.hasSuffix("needs room; remove other files"), "\(message)")
        try FileSystem.removeFile(disk.filler)
        #expect(try larder.engine().check(copying: []).problems.isEmpty)
        disk.fill(leaving: 0)
        larder.close()
        #expect(try larder.check().problems.isEmpty, "without the daemon no copy is made")
    }

    /// Writes three times as much as fits on the file system.
    @Test func noWriteFailsIfTheDiskLimitExceedsTheFileSystem() throws {
        let disk = try SmallDisk(bytes: Self.diskBytes)
        let larder = try larder(disk)
        let database = try larder.database(policy: .never)
        let count = 3 * Self.diskBytes / Self.valueBytes
        for number in 0..<count { try put(database, number) }
        #expect(try check(database, 0..<count) > count / 12)
        #expect(try database.get(Key("key:\(count - 1)")) != nil)
        #expect(try larder.engine().statistics.evicted.read() > count / 3)
    }

    /// Other programs fill the file system. None of their files is removed.
    @Test func entriesAreEvictedWhenOtherProgramsFillTheDisk() throws {
        let disk = try SmallDisk(bytes: Self.diskBytes)
        let larder = try larder(disk)
        let database = try larder.database(policy: .never)
        let half = Self.diskBytes / 2 / Self.valueBytes
        for number in 0..<half { try put(database, number) }
        try larder.engine().save()
        let all = try check(database, 0..<half)
        #expect(all > half / 2)
        let store = try #require(database.durableState.store)
        // Suspends the store (it then refuses writes), as the engine does when a compaction runs out of disk space.
        store.suspend(LarderError(.io, "no space left", operation: "test"))
        disk.fill(leaving: 0)
        try larder.maintain()
        #expect(!store.isSuspended)
        #expect(try larder.engine().statistics.evicted.read() > 0)
        let left = try check(database, 0..<half)
        #expect(left > 0 && left < all, "\(left) of \(all)")
        for number in half..<2 * half { try put(database, number) }
        #expect(try check(database, 0..<2 * half) > 0)
        larder.close()
        let again = try larder.database()
        #expect(try check(again, 0..<2 * half) > 0)
        try again.durableState.store?.verify()
    }

    /// An administrator lowers the limit when the disk is full.
    @Test func loweringTheDiskLimitFreesSpace() throws {
        let disk = try SmallDisk(bytes: Self.diskBytes)
        let larder = try larder(disk)
        let database = try larder.database(policy: .never)
        let count = Self.diskBytes / Self.valueBytes
        for number in 0..<count { try put(database, number) }
        try larder.engine().save()
        let before = try check(database, 0..<count)
        try #require(database.durableState.store).suspend(LarderError(.io, "no space left", operation: "test"))
        disk.fill(leaving: 0)
        try larder.engine().changeDiskLimit(to: 20 << 20)
        try larder.maintain()
        try put(database, count)
        let left = try check(database, 0..<count)
        #expect(left > 0 && left < before, "\(left) of \(before)")
        // Wait for LevelDB's compactions: until they end, the old and the new tables both use space.
        var attempts = 100
        while try larder.engine().diskBytes > 24 << 20, attempts > 0 {
            attempts -= 1
            usleep(100_000)
            try larder.maintain()
        }
        #expect(try larder.engine().diskBytes <= 24 << 20)
        for number in count..<2 * count { try put(database, number) }
    }

    /// The journal uses only a part of the disk. The other part has entries in LevelDB, which can be evicted.
    @Test func settingADiskLimitFreesSpaceOnAFullDisk() throws {
        let disk = try SmallDisk(bytes: Self.diskBytes)
        let larder = try TestLarder(below: disk.path) {
            $0.diskBytesMax = nil
            $0.memoryBytes = 1 << 20
            $0.checkpointBytes = 64 << 20
        }
        let database = try larder.database(policy: .never)
        var count = 0
        while errorCode({ try put(database, count) }) == nil, count < 5000 { count += 1 }
        #expect(count < 5000)
        try larder.engine().changeDiskLimit(to: 20 << 20)
        try larder.maintain()
        for number in count..<count + 300 { try put(database, number) }
        #expect(try check(database, 0..<count + 300) > 100)
        #expect(try larder.engine().statistics.evicted.read() > 0)
    }

    /// Evicting a whole table loses no newer version of its entries, and brings no older version back.
    @Test func evictingTablesReportsThemAndKeepsNewerValues() throws {
        let disk = try SmallDisk(bytes: Self.diskBytes)
        let larder = try larder(disk)
        let database = try larder.database(policy: .never)
        for number in 0..<1500 { try put(database, number) }
        try larder.engine().save()
        // These removals are only in memory and in the journal.
        for number in stride(from: 0, to: 1500, by: 10) { try database.remove("key:\(number)") }
        let store = try #require(database.durableState.store)
        let before = try check(database, 0..<1500)
        var (evicted, bytes) = (0, 0)
        // Repeats until no table can be removed without reviving older entries.
        while true {
            let outcome = try TableRemoval(database: database, store: store, wantedBytes: 4 << 20)
                .run(now: database.now())
            if outcome.seenBytes == 0 { break }
            (evicted, bytes) = (evicted + outcome.evicted, bytes + outcome.seenBytes)
        }
        #expect(evicted > 100 && bytes > evicted * Self.valueBytes * 9 / 10, "\(evicted), \(bytes)")
        #expect(!store.isSuspended)
        for number in stride(from: 0, to: 1500, by: 10) {
            #expect(try database.get(Key("key:\(number)")) == nil)
        }
        let left = try check(database, 0..<1500)
        #expect(left < before && left + evicted == before, "old versions of changed entries are not counted")
        try larder.engine().save()
        larder.close()
        #expect(try check(try larder.database(), 0..<1500) == left)
    }

    /// A failed compaction left a table that the manifest does not name. LevelDB cannot remove it without disk space.
    @Test func leftoverTablesThatNoManifestNamesAreRemoved() throws {
        let disk = try SmallDisk(bytes: Self.diskBytes)
        let larder = try larder(disk)
        let database = try larder.database(policy: .never)
        try put(database, 1)
        try larder.engine().save()
        let store = try #require(database.durableState.store)
        let removal = TableRemoval(database: database, store: store, wantedBytes: 4 << 20)
        let leftover = store.path + "/999999.ldb"
        try Files.write(leftover, [UInt8](repeating: 1, count: 100_000))
        // While LevelDB is running, the table may belong to a running compaction, so it stays.
        #expect(try removal.run(now: database.now()).seenBytes == 0)
        #expect(FileSystem.exists(leftover))
        store.suspend(LarderError(.io, "a merge has failed", operation: "merge"))
        let outcome = try removal.run(now: database.now())
        #expect(outcome.seenBytes == 100_000 && outcome.evicted == 0)
        #expect(!FileSystem.exists(leftover) && !store.isSuspended)
        #expect(try database.get(Key("key:1")) != nil)
    }
}
