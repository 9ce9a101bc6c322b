import Foundation
import Larder
import LarderTestSupport
import Testing

@Suite struct OpeningTests {
    let work: Workspace

    init() throws { work = try Workspace() }

    @Test func withoutANameTheDefaultDatabaseIsOpened() throws {
        let cache = try Cache(directory: work.directory, options: work.options())
        #expect(cache.name == "0")
        #expect(cache.policy == .lowest)
        try cache.set(1, forKey: "a")
        #expect(try Cache.databases(in: work.directory) == ["0"])
    }

    @Test func withoutAPolicyTheFirstWriteCreatesTheFiles() throws {
        let cache = try work.cache(policy: nil)
        #expect(try Cache.databases(in: work.directory) == [])
        #expect(try cache.value(Int.self, forKey: "a") == nil)
        #expect(try cache.remove("a") == false)
        #expect(try cache.touch("a", policy: .never) == false)
        #expect(try cache.count() == 0)
        #expect(try cache.keys() == [])
        #expect(try cache.removeAll(counting: true).entries == 0)
        #expect(try cache.remove(prefix: "a").entries == 0)
        #expect(try cache.snapshot().keys() == [])
        #expect(try Cache.databases(in: work.directory) == [])
        try cache.set(1, forKey: "a")
        #expect(try Cache.databases(in: work.directory) == ["books"])
        #expect(cache.policy == .lowest)
    }

    @Test func withAPolicyTheFilesAreCreatedAtOnce() throws {
        let cache = try work.cache(policy: .middle)
        #expect(try Cache.databases(in: work.directory) == ["books"])
        #expect(cache.policy == .middle)
    }

    @Test func thePolicyIsStoredInTheDatabase() throws {
        try work.cache(policy: .middle).close()
        let again = try work.cache(policy: nil)
        #expect(again.policy == .middle)
        let changing = try work.cache(policy: .low)
        #expect(again.policy == .low)
        try changing.setPolicy(.never)
        #expect(again.policy == .never)
    }

    @Test func anIntervalCanBeThePolicyOfADatabase() throws {
        let cache = try Cache(named: "books", interval: 2.5, directory: work.directory, options: work.options())
        #expect(cache.policy == .every(2.5))
        try cache.set(1, forKey: "a")
        work.time.advance(milliseconds: 2_499)
        #expect(try cache.value(Int.self, forKey: "a") == 1)
        work.time.advance(milliseconds: 1)
        #expect(try cache.value(Int.self, forKey: "a") == nil)
    }

    @Test(arguments: [0, -1, 0.0004, 9_000_000_001, .infinity, -.infinity, .nan])
    func invalidIntervalsAreRefused(_ seconds: Double) throws {
        let text = expectError(.invalidArgument) {
            _ = try Cache(named: "books", interval: seconds, directory: work.directory, options: work.options())
        }
        #expect(text.contains("0.001") && text.contains("never"))
        #expect(try Cache.databases(in: work.directory) == [])
    }

    @Test(arguments: ["", "Books", "a/b", "..", ".a", "-a", "16", "007", "a b", "é", String(repeating: "a", count: 65)])
    func invalidNamesAreRefused(_ name: String) throws {
        let text = expectError(.invalidArgument) { _ = try work.cache(name) }
        #expect(text.contains("1 to 64 characters"))
        expectError(.invalidArgument) { try Cache.delete(named: name, directory: work.directory) }
        expectError(.invalidArgument) { try Cache.setAsideDamaged(named: name, directory: work.directory) }
    }

    /// The database of an outbox cannot be opened as a cache, because only the outbox may change it.
    @Test func outboxDatabasesCannotBeOpenedAsCaches() throws {
        let text = expectError(.invalidArgument) { _ = try work.cache("orders.outbox") }
        #expect(text.contains("reserved for outboxes"))
        expectError(.invalidArgument) { _ = try Cache.inMemory(named: "orders.outbox") }
        #expect(try Cache.databases(in: work.directory) == [])
    }

    @Test func invalidOptionsAreRefused() throws {
        let changes: [(String, (inout CacheOptions) -> Void)] = [
            ("memoryBytes", { $0.memoryBytes = -1 }), ("blockCacheBytes", { $0.blockCacheBytes = -1 }),
            ("bloomBitsPerKey", { $0.bloomBitsPerKey = 65 }),
            ("writeBufferBytes", { $0.writeBufferBytes = 1 }),
            ("openFilesMax", { $0.openFilesMax = 0 }),
            ("databasesMax", { $0.databasesMax = 0 }),
        ]
        for (name, change) in changes {
            let text = expectError(.invalidArgument) { _ = try work.cache("a", change) }
            #expect(text.contains(name))
        }
        #expect(FileManager.default.fileExists(atPath: work.directory) == false)
    }

    @Test func unusableDirectoriesAreRefused() throws {
        expectError(.invalidArgument) { _ = try Cache(directory: "", options: work.options()) }
        expectError(.invalidArgument) { _ = try Cache(directory: "/tmp/a\0b", options: work.options()) }
        expectError(.io) { _ = try Cache(directory: "/dev/null/larder", options: work.options()) }
        #expect(try Cache.databases(in: "/dev/null/larder") == [])
    }

    @Test func theDefaultDirectoryIsNamedAfterTheProgram() {
        let path = Cache.defaultDirectory
        let program = CommandLine.arguments.first.map { URL(fileURLWithPath: $0).lastPathComponent } ?? ""
        #expect(path.hasSuffix("/\(program)/larder"))
        #expect(path.hasPrefix("/"))
    }

    @Test func twoHandlesOfOneNameShareTheDatabase() throws {
        let one = try work.cache()
        let other = try Cache(named: "books", directory: work.directory + "/../larder/.", options: work.options())
        try one.set("x", forKey: "k")
        #expect(try other.value(String.self, forKey: "k") == "x")
        #expect(one.directory == other.directory)
        one.close()
        #expect(try other.value(String.self, forKey: "k") == "x")
        expectError(.closed) { _ = try one.value(String.self, forKey: "k") }
    }

    @Test func severalDatabasesInOneLarderAreSeparate() throws {
        let one = try work.cache("one", policy: .high)
        let two = try work.cache("two", policy: .never)
        try one.set(1, forKey: "k")
        try two.set(2, forKey: "k")
        work.time.advance(milliseconds: 60_000)
        #expect(try one.value(Int.self, forKey: "k") == nil)
        #expect(try two.value(Int.self, forKey: "k") == 2)
        try one.removeAll()
        #expect(try two.count() == 1)
        #expect(try Cache.databases(in: work.directory) == ["one", "two"])
    }

    @Test func tooManyDatabasesAreRefused() throws {
        let one = try work.cache("one") { $0.databasesMax = 1 }
        expectError(.tooManyDatabases) { _ = try work.cache("two") }
        try one.delete()
        _ = try work.cache("two")
    }

    @Test func storedEntriesSurviveReopening() throws {
        for round in 0..<3 {
            let cache = try work.cache()
            #expect(try cache.count() == round)
            try cache.set(Reader("r\(round)"), forKey: "k\(round)")
            #expect(try cache.value(Reader.self, forKey: "k0") == Reader("r0"))
            cache.close()
        }
    }

    @Test func closingIsIdempotentAndLaterCallsThrowClosed() throws {
        let cache = try work.cache()
        let batch = cache.makeBatch()
        try batch.set(1, forKey: "a")
        cache.close()
        cache.close()
        let calls: [(Cache) throws -> Void] = [
            { _ = try $0.value(Int.self, forKey: "a") }, { _ = try $0.bytes(forKey: "a") },
            { _ = try $0.contains("a") }, { _ = try $0.info(forKey: "a") }, { _ = try $0["a", as: Int.self] },
            { _ = try $0.values(Int.self, forKeys: ["a"]) }, { _ = try $0.keys() }, { _ = try $0.count() },
            { _ = try $0.entries(of: Int.self).values() }, { _ = try $0.snapshot() }, { try $0.set(1, forKey: "a") },
            { try $0.setBytes([], forKey: "a") }, { try $0.apply(batch) }, { try $0.remove("a") },
            { try $0.remove(["a"]) }, { try $0.removeAll() }, { try $0.remove(prefix: "a") },
            { try $0.removeExpired() }, { try $0.sweep() }, { try $0.delete() }, { try $0.setPolicy(.low) },
            { try $0.touch("a", policy: .low) },
        ]
        for call in calls { expectError(.closed) { try call(cache) } }
        #expect(cache.name == "books")
    }

    @Test func theErrorNamesTheProcessThatHasTheLarderOpen() throws {
        try work.cache().close()
        let file = open(work.directory + "/LOCK", O_RDWR)
        #expect(file >= 0)
        defer { close(file) }
        // Locks the file, as another process would do.
        #expect(flock(file, LOCK_EX | LOCK_NB) == 0)
        let text = expectError(.larderHeld) { _ = try work.cache() }
        #expect(text.contains("process \(getpid())"))
        expectError(.larderHeld) { try Cache.delete(named: "books", directory: work.directory) }
        #expect(try Cache.databases(in: work.directory) == ["books"])
        #expect(flock(file, LOCK_UN) == 0)
        _ = try work.cache()
    }

    @Test func aLarderStaysOpenUntilItsLastHandleIsReleased() throws {
        var cache: Cache? = try work.cache()
        try cache?.set(1, forKey: "a")
        let snapshot = try cache?.snapshot()
        let entries = try cache?.entries(of: Int.self).makeIterator()
        cache = nil
        #expect(try snapshot?.value(Int.self, forKey: "a") == 1)
        snapshot?.close()
        #expect(try entries?.next()?.value() == 1)
        // The larder is still open, and its other options take effect only when it is reopened.
        expectError(.invalidArgument) { _ = try work.cache("b") { $0.databasesMax = 1 } }
        entries?.close()
        expectError(.tooManyDatabases) { _ = try work.cache("b") { $0.databasesMax = 1 } }
    }

    @Test("a handle with different options for an open larder is refused")
    func optionsThatCannotBeHonouredAreRefused() throws {
        let options = work.options {
            $0.memoryBytes = 8 << 20
            $0.onEvent = { _ in }
        }
        let directory = work.directory
        let first = try Cache(named: "a", directory: directory, options: options)
        let changes: [(String, @Sendable (inout CacheOptions) -> Void)] = [
            ("diskBytesMax", { $0.diskBytesMax = 64 << 20 }), ("memoryBytes", { $0.memoryBytes = 16 << 20 }),
            ("timeSource", { $0.timeSource = ManualTimeSource() }),
            ("timeSource", { $0.timeSource = SystemTimeSource() }),
            ("onEvent", { $0.onEvent = { _ in } }), ("compression", { $0.compression = false }),
            ("onDamage", { $0.onDamage = .salvage }), ("backgroundMaintenance", { $0.backgroundMaintenance = true }),
        ]
        for (name, change) in changes {
            var other = CacheOptions()
            change(&other)
            let text = expectError(.invalidArgument) {
                _ = try Cache(named: "b", directory: directory, options: other)
            }
            #expect(text.contains(name), "\(text)")
        }
        // The same options, and the default options, are accepted.
        for other in [options, CacheOptions()] {
            #expect(
                try Cache(named: "b", directory: directory, options: other).statistics().memoryLimitBytes == 8 << 20)
        }
        first.close()
        var other = CacheOptions()
        other.memoryBytes = 16 << 20
        let reopened = try Cache(named: "b", directory: directory, options: other)
        #expect(try reopened.statistics().memoryLimitBytes == 16 << 20)
    }

    @Test func everysecondIsRefusedIfTheLarderIsOpenWithoutIt() throws {
        let weak = try work.cache { $0.durability = .os }
        expectError(.invalidArgument) { _ = try work.cache { $0.durability = .everysecond } }
        let strong = try work.cache { $0.durability = .always }
        try strong.set(1, forKey: "a")
        try weak.set(2, forKey: "b", durability: .always)
        #expect(try work.cache().count() == 2)
    }

    @Test func theCreationOfADatabaseIsReportedToOnEvent() throws {
        let events = Recorder<CacheEvent>()
        let cache = try work.cache { options in options.onEvent = { events.add($0) } }
        try cache.delete()
        #expect(events.all.contains { $0.level == .info && $0.message.contains("created database 'books'") })
        #expect(events.all.first.map { "\($0)".hasPrefix("info: ") } == true)
    }
}
