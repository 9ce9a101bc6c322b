import LarderPlatform
import LarderTestSupport
import Testing

@testable import LarderEngine

/// Tests of the disk limit, with a manual clock and without background threads, so that writers run all checkpoints.
@Suite struct DiskBudgetTests {
    private static let limit = 16 << 20
    /// The maximum disk usage, in bytes, including what a checkpoint and a compaction may use above the limit.
    private static let most = DiskThresholds(limit: limit, checkpointBytes: 64 << 20, hasJournal: true).peakBytes

    /// Records all committed changes.
    private final class Listener: ChangeSubscriber {
        let evicted = Guarded<Set<[UInt8]>>([])

        func take(_ changes: [EntryChange]) {
            for change in changes {
                if case .evicted = change.kind {
                    evicted.with { _ = $0.insert(change.key) }
                } else {
                    evicted.with { _ = $0.remove(change.key) }
                }
            }
        }
    }

    private func larder(limit: Int? = limit) throws -> TestLarder {
        try TestLarder {
            $0.diskBytesMax = limit
            $0.memoryBytes = 1 << 20
        }
    }

    /// Stores entries that cannot be compressed.
    private func fill(
        _ database: Database, _ keys: Range<Int>, prefix: String = "key", bytes: Int = 4000,
        rule: DeadlineRule = .governed, seed: UInt64 = 1, each: (Int) throws -> Void = { _ in }
    ) throws {
        var random = SeededGenerator(seed: seed)
        for number in keys {
            let value = Incompressible.bytes(count: bytes, &random)
            try database.commit([Key("\(prefix):\(number)")], loading: .none) { update in
                value.withUnsafeBytes { update.put(0, payload: $0, rule: rule) }
            }
            try each(number)
        }
    }

    private func count(_ database: Database) throws -> Int { try database.entryNumbers().fresh }

    private func has(_ database: Database, _ key: String) throws -> Bool { try database.get(Key(key)) != nil }

    private func keys(_ database: Database) throws -> Set<String> { Set(try database.cursor()?.keys() ?? []) }

    @Test func writesBeyondTheDiskLimitEvictEarlierEntries() throws {
        let larder = try larder()
        let database = try larder.database(policy: .never)
        var most = 0
        try fill(database, 0..<6_000) { number in
            if number % 50 == 0 { most = max(most, FileSystem.space(larder.path)) }
        }
        #expect(most <= Self.most, "\(most)")
        #expect(most > Self.limit / 2)
        let statistics = try larder.engine().statistics
        #expect(statistics.evicted.read() > 1_500)
        #expect(statistics.evictedBytes.read() > statistics.evicted.read() * 4000)
        // The entry that was stored last has not been evicted.
        #expect(try has(database, "key:5999"))
        let left = try count(database)
        #expect(left > 1_500 && left < 4_200)
        #expect(database.counts.evicted == statistics.evicted.read())
        let kept = try keys(database)
        let before = statistics.evicted.read()
        larder.close()
        // A restart keeps the remaining entries. The checkpoint at shutdown may evict some, and counts them.
        let found = try keys(try larder.database())
        let reopened = try larder.engine().statistics.evicted.read()
        let evicted = statistics.evicted.read() - before + reopened
        #expect(found.isSubset(of: kept) && kept.count - found.count <= evicted, "\(kept.count), \(found.count)")
        #expect(found.count > kept.count / 2)
    }

    @Test func missesOfEvictedEntriesAreCountedSeparately() throws {
        let larder = try larder()
        let database = try larder.database(policy: .never)
        try fill(database, 0..<6_000)
        let kept = try keys(database)
        let gone = (0..<6_000).map { "key:\($0)" }.filter { !kept.contains($0) }
        #expect(gone.count > 1_500)
        for key in gone { #expect(try !has(database, key)) }
        let counted = database.counts
        #expect(counted.misses == gone.count)
        // The engine remembers a limited number of evicted keys, so a few of these misses are not attributed to
        // evictions.
        #expect((gone.count / 10 * 9...gone.count).contains(counted.missesEvicted))
        func misses(_ keys: [String]) throws -> Int {
            let before = database.counts.missesEvicted
            for key in keys { #expect(try !has(database, key)) }
            return database.counts.missesEvicted - before
        }
        #expect(try misses(["never stored"]) == 0)
        // If a key was removed after its eviction, its misses are not attributed to the eviction.
        for key in gone[..<100] { try database.remove(key) }
        #expect(try misses(Array(gone[..<100])) == 0)
        #expect(try misses(Array(gone[100..<200])) > 80)
        _ = try database.purge(.prefix(Array("key:".utf8)))
        #expect(try misses(Array(gone[100..<200])) == 0)
    }

    /// A backup or a check makes an image: a copy of the larder with hard links to the tables. Tables that are
    /// compacted later stay on the disk until the image is removed, but do not count towards the limit.
    @Test func filesLinkedForABackupDoNotCountTowardsTheDiskLimit() throws {
        let larder = try larder(limit: 64 << 20)
        let database = try larder.database(policy: .never)
        try fill(database, 0..<4_000)
        let engine = try larder.engine()
        let store = try #require(try database.flushedStore())
        let disk = database.context.larder.disk
        try store.compactAll()
        let tables = try #require(store.tables.measure()?.bytes)
        let before = disk.measure(nil, [store])
        #expect(tables > 15 << 20)
        try engine.withImage(adding: []) { _ in
            let within = disk.measure(nil, [store]).bytes
            #expect(within - before.bytes < 1 << 20, "\(within) of \(before.bytes)")
            // Writes more entries and compacts all tables, so that only the image still has links to the previous ones.
            try fill(database, 0..<100, seed: 2)
            _ = try database.flushedStore()
            try store.compactAll()
            let merged = disk.measure(nil, [store])
            #expect(merged.bytes - before.bytes < 4 << 20, "\(merged.bytes) of \(before.bytes)")
            #expect(disk.measure() < before.bytes + 8 << 20)
            #expect(FileSystem.space(larder.path) > disk.measure() + tables / 2)
        }
        #expect(FileSystem.space(larder.path) < disk.measure() + tables / 2)
        #expect(engine.statistics.evicted.read() == 0)
    }

    @Test func pendingOutboxWritesAreNotEvicted() throws {
        let larder = try larder()
        let outbox = try larder.database("a.outbox")
        let database = try larder.database(policy: .never)
        try fill(outbox, 0..<1_000, prefix: "waits", rule: .ownNever)
        try fill(database, 0..<6_000)
        let engine = try larder.engine()
        #expect(engine.statistics.evicted.read() > 2_500)
        #expect(try count(outbox) == 1_000)
        #expect(outbox.counts.evicted == 0)
        // The entries survive a year and a restart.
        larder.time.advance(milliseconds: 366 * 86_400_000)
        _ = try outbox.purge(.expired(merges: true))
        larder.close()
        #expect(try count(try larder.database("a.outbox")) == 1_000)
    }

    /// If only pending writes are left, new writes are refused and nothing is lost.
    @Test func newWritesAreRefusedIfOnlyPendingOutboxWritesAreLeft() throws {
        let larder = try larder()
        let outbox = try larder.database("a.outbox")
        var stored = 0
        #expect(throws: LarderError.self) {
            try fill(outbox, 0..<20_000, prefix: "waits", rule: .ownNever) { _ in stored += 1 }
        }
        #expect(stored > 1_500)
        #expect(try count(outbox) >= stored)
        #expect(outbox.counts.evicted == 0)
    }

    @Test("at least nine in ten of the entries that are read often survive evictions")
    func entriesThatAreReadOftenSurviveEvictions() throws {
        let larder = try larder()
        let database = try larder.database(policy: .never)
        try fill(database, 0..<200, prefix: "hot")
        try fill(database, 0..<6_000) { number in
            larder.time.advance(milliseconds: 10)
            guard number % 20 == 0 else { return }
            for _ in 0..<20 { _ = try has(database, "hot:\(Int.random(in: 0..<200))") }
        }
        let hot = try (0..<200).filter { try has(database, "hot:\($0)") }.count
        #expect(hot >= 180, "\(hot)")
        #expect(try larder.engine().statistics.evicted.read() > 1_500)
    }

    @Test func expiredEntriesAreEvictedFirst() throws {
        let larder = try larder()
        let database = try larder.database(policy: .never)
        // Entries that live longer than a day have no index keys, so only a scan finds them.
        let deadline = database.now() + 2 * 86_400_000
        try fill(database, 0..<1_400, prefix: "short", rule: .own(deadline))
        try fill(database, 0..<1_300, prefix: "long")
        larder.time.advance(milliseconds: 3 * 86_400_000)
        let statistics = try larder.engine().statistics
        // The time at which the space runs out depends on LevelDB's compactions.
        for begin in stride(from: 0, to: 2_400, by: 100) where begin < 1_200 || statistics.expiredSwept.read() == 0 {
            try fill(database, begin..<begin + 100, prefix: "new", seed: UInt64(begin))
        }
        #expect(try keys(database).filter { $0.hasPrefix("long") }.count >= 1_200)
        #expect(statistics.expiredSwept.read() > 0)
    }

    @Test func purgedEntriesAreReclaimedFirst() throws {
        let larder = try larder()
        let (first, second) = (
            try larder.database("first", policy: .never), try larder.database("second", policy: .never)
        )
        try fill(first, 0..<1_300)
        try fill(second, 0..<1_300)
        try larder.engine().save()
        _ = try first.purge()
        try fill(second, 1_300..<2_700)
        #expect(try larder.engine().statistics.evicted.read() == 0)
        #expect(try count(second) == 2_700)
    }

    @Test func evictionsAreReportedToObservers() throws {
        let larder = try larder()
        let database = try larder.database(policy: .never)
        let listener = Listener()
        try larder.engine().changes.subscribe(listener)
        try fill(database, 0..<5_000)
        let left = try keys(database)
        let evicted = Set(listener.evicted.value.map { String(decoding: $0, as: UTF8.self) })
        #expect(evicted.count > 500)
        #expect(left.isDisjoint(with: evicted))
        #expect(left.union(evicted).count == 5_000)
    }

    @Test func aDatabaseCanHaveADiskLimitOfItsOwn() throws {
        let larder = try larder(limit: nil)
        let (small, other) = (
            try larder.database("small", policy: .never), try larder.database("other", policy: .never)
        )
        try small.setDiskLimit(6 << 20)
        #expect(small.diskLimit == 6 << 20)
        try fill(other, 0..<2_000)
        try fill(small, 0..<4_000)
        try larder.engine().save()
        #expect(small.diskBytes <= 14 << 20)
        #expect(try count(other) == 2_000)
        #expect(try count(small) < 1_700 && count(small) > 300)
        #expect(small.counts.evicted > 2_000 && other.counts.evicted == 0)
        // The limit is stored with the database and survives a purge.
        _ = try small.purge()
        larder.close()
        #expect(try larder.database("small").diskLimit == 6 << 20)
        try larder.database("small").setDiskLimit(0)
        larder.close()
        #expect(try larder.database("small").diskLimit == 0)
        #expect(errorCode { try larder.database("small").setDiskLimit(1000) } == .invalidArgument)
    }

    @Test func aValueLargerThanHalfOfTheLimitIsRefused() throws {
        let larder = try larder(limit: nil)
        let database = try larder.database("small", policy: .never)
        try database.setDiskLimit(4 << 20)
        func put(_ count: Int) throws(LarderError) {
            let value = UnsafeMutableRawBufferPointer.allocate(byteCount: count, alignment: 1)
            defer { value.deallocate() }
            value.initializeMemory(as: UInt8.self, repeating: 1)
            try database.put(
                Key("k"), payload: UnsafeRawBufferPointer(value), .governed, codec: .raw, durability: nil)
        }
        try put(1 << 20)
        #expect(errorCode { try put(3 << 20) } == .invalidArgument)
        #expect(try database.get(Key("k"))?.payloadCount == 1 << 20)
        larder.close()
    }

    @Test func theDiskLimitCanBeChangedAtRunTime() throws {
        let larder = try larder(limit: nil)
        let database = try larder.database(policy: .never)
        try fill(database, 0..<6_000)
        try larder.engine().save()
        #expect(try larder.engine().diskBytes > 20 << 20)
        try larder.engine().changeDiskLimit(to: Self.limit)
        try larder.maintain()
        #expect(try larder.engine().diskBytes <= Self.limit)
        let left = try count(database)
        #expect(left > 1_500)
        try larder.engine().changeDiskLimit(to: nil)
        try fill(database, 0..<6_000)
        #expect(try count(database) == 6_000)
    }

    @Test func valuesTooLargeForTheDiskLimitAreRefused() throws {
        let larder = try larder()
        let database = try larder.database(policy: .never)
        try fill(database, 0..<100)
        for bytes in [9 << 20, 40 << 20] {
            do {
                try database.putAhead("large", String(repeating: "x", count: bytes))
                Issue.record("\(bytes) bytes were stored")
            } catch {
                #expect(error.message.contains("--max-disk") && error.message.contains("\(Self.limit)"))
            }
        }
        #expect(try count(database) == 100)
        try database.putAhead("large", String(repeating: "x", count: 7 << 20))
        #expect(try has(database, "large"))
    }

    /// A file of another program in the larder's directory uses up the limit. The error of a refused write names that
    /// file.
    @Test func theErrorNamesForeignFilesThatUseUpTheDiskLimit() throws {
        let larder = try larder()
        let database = try larder.database(policy: .never)
        try fill(database, 0..<100)
        try Files.write(larder.path + "/foreign", [UInt8](repeating: 1, count: 40 << 20))
        do {
            try fill(database, 100..<6_000)
            Issue.record("everything was stored")
        } catch {
            let message = (error as? LarderError)?.message ?? ""
            #expect(message.contains("--max-disk") && message.contains("foreign takes"), "\(message)")
        }
        try Files.remove(larder.path + "/foreign")
        try larder.engine().save()
        try fill(database, 0..<100)
        #expect(try has(database, "key:99"))
    }

    @Test func snapshotsDoNotPreventEviction() throws {
        let larder = try larder()
        let database = try larder.database(policy: .never)
        try fill(database, 0..<2_500)
        try larder.engine().save()
        let snapshot = try database.snapshot()
        try fill(database, 2_500..<6_000)
        #expect(FileSystem.space(larder.path) <= Self.most)
        #expect(errorCode { _ = try snapshot.get(Key("key:1")) } == .invalidated)
    }

    /// An entry that was evicted, stored again and removed does not come back, even if the process is killed before the
    /// next checkpoint.
    @Test func anEvictedAndRemovedEntryStaysRemovedAfterACrashOrARestart() throws {
        let larder = try larder()
        let database = try larder.database(policy: .never)
        try fill(database, 0..<5_000)
        let evicted = try (0..<5_000).filter { try !has(database, "key:\($0)") }
        let number = try #require(evicted.first)
        try fill(database, number..<(number + 1), bytes: 10)
        try database.remove("key:\(number)")
        let crashed = try larder.crashCopy()
        #expect(try !has(try crashed.database(), "key:\(number)"))
        larder.close()
        #expect(try !has(try larder.database(), "key:\(number)"))
    }
}
