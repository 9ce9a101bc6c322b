import Foundation
import Testing

@testable import Larder

/// One after the other: they look for what others leave behind.
@Suite(.serialized) struct InMemoryTests {
    @Test func aLarderInMemoryLeavesNothingBehind() throws {
        let cache = try Cache.inMemory(policy: .low)
        let directory = cache.directory
        #expect(FileManager.default.fileExists(atPath: directory))
        #if os(Linux)
            #expect(directory.hasPrefix("/dev/shm/"))
        #endif
        try cache.set(Reader("a"), forKey: "k")
        #expect(try cache.value(Reader.self, forKey: "k") == Reader("a"))
        #expect(cache.policy == .low)
        // Another database of the same larder, and what else keeps it open.
        let other = try Cache(named: "other", directory: directory)
        try other.set(1, forKey: "k")
        let snapshot = try cache.snapshot()
        cache.close()
        other.close()
        #expect(FileManager.default.fileExists(atPath: directory))
        #expect(try snapshot.value(Reader.self, forKey: "k") == Reader("a"))
        snapshot.close()
        #expect(!FileManager.default.fileExists(atPath: directory))
    }

    @Test func oneThatNobodyRefersToIsGone() throws {
        var cache: Cache? = try Cache.inMemory()
        let directory = try #require(cache?.directory)
        try cache?.set(1, forKey: "k")
        cache = nil
        #expect(!FileManager.default.fileExists(atPath: directory))
    }

    @Test func eachIsALarderOfItsOwn() async throws {
        let time = ManualTimeSource()
        var options = CacheOptions()
        options.timeSource = time
        let (first, second) = (try await Cache.inMemory(policy: .high, options: options), try await Cache.inMemory())
        #expect(first.directory != second.directory)
        try await first.set(1, forKey: "k")
        #expect(try await !second.contains("k"))
        #expect(second.policy == .lowest)
        time.advance(milliseconds: 60_000)
        #expect(try await !first.contains("k"))
        await first.close()
        await second.close()
    }

    @Test func whatCannotBeOpenedLeavesNothingEither() throws {
        let before = try leftovers()
        expectError(.invalidArgument) { _ = try Cache.inMemory(named: "No Name") }
        var options = CacheOptions()
        options.bloomBitsPerKey = -1
        expectError(.invalidArgument) { _ = try Cache.inMemory(options: options) }
        #expect(try leftovers() == before)
    }

    /// A process that was killed cannot clear up; the next one that wants memory does.
    @Test func whatAKilledProcessLeftIsRemoved() throws {
        // The number of a process that has ended.
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/bin/true")
        try process.run()
        process.waitUntilExit()
        let left = "\(MemoryDirectories.place)/larder-memory-\(getuid())-\(process.processIdentifier)-1"
        try FileManager.default.createDirectory(atPath: left + "/0", withIntermediateDirectories: true)
        try Data("pid 1\n".utf8).write(to: URL(fileURLWithPath: left + "/LOCK"))
        let cache = try Cache.inMemory()
        #expect(!FileManager.default.fileExists(atPath: left))
        #expect(FileManager.default.fileExists(atPath: cache.directory))
        cache.close()
    }

    private func leftovers() throws -> Set<String> {
        Set(
            try FileManager.default.contentsOfDirectory(atPath: MemoryDirectories.place).filter {
                $0.hasPrefix("larder-memory-\(getuid())-\(getpid())-")
            })
    }
}

@Suite struct StatisticsTests {
    let work: Workspace

    init() throws { work = try Workspace() }

    @Test func whatWasDoneIsCountedByDatabase() throws {
        let (books, people) = (try work.cache("books"), try work.cache("people"))
        try books.set(["a": 1, "b": 2, "c": 3])
        try people.set("ana", forKey: "a")
        for _ in 0..<3 { _ = try books.value(Int.self, forKey: "a") }
        _ = try books.value(Int.self, forKey: "none")
        try books.remove("c")
        _ = try people.bytes(forKey: "none")
        let statistics = try books.statistics()
        #expect(try people.statistics().databases == statistics.databases)
        let of = try #require(statistics.databases["books"])
        #expect(of.hits == 3)
        #expect(of.misses == 1)
        #expect(of.writes == 3)
        #expect(of.removals == 1)
        #expect(of.entries == 2)
        #expect(of.bytes > 0)
        #expect(statistics.databases["people"]?.writes == 1)
        #expect(statistics.databases["people"]?.misses == 1)
        #expect(statistics.hits == 3)
        #expect(statistics.misses == 2)
        #expect(statistics.hitRatio == 0.6)
        #expect(statistics.entries == 3)
        #expect(statistics.bytes >= statistics.journalBytes + of.bytes)
        #expect(statistics.memoryBytes > 0)
        #expect(statistics.memoryLimitBytes == 16 << 20)
        // Asking does not count.
        #expect(try books.statistics().hits == 3)
        books.close()
        expectError(.closed) { _ = try books.statistics() }
    }

    @Test func nothingReadHasNoRatio() async throws {
        let cache = try work.cache()
        let statistics = try await cache.statistics()
        #expect(statistics.hitRatio == nil)
        #expect(statistics.entries == 0)
    }

    /// Foundation shows errors by `localizedDescription`; without `LocalizedError` that says nothing.
    @Test func everyPublicErrorSaysWhatItIs() throws {
        let cache = try work.cache()
        try cache.set("text", forKey: "k")
        let error = try #require(throws: LarderError.self) { try cache.value(Int.self, forKey: "k") }
        #expect(error.localizedDescription == error.description)
    }
}
