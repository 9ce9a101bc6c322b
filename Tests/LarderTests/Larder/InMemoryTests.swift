import Foundation
import LarderPlatform
import LarderTestSupport
import Testing

@testable import Larder

/// Tests of larders in memory. Serialized, because the tests look for directories that other larders left behind.
@Suite(.serialized) struct InMemoryTests {
    @Test func aLarderInMemoryLeavesNoFiles() throws {
        let cache = try Cache.inMemory(policy: .low)
        let directory = cache.directory
        #expect(FileManager.default.fileExists(atPath: directory))
        #if os(Linux)
            #expect(directory.hasPrefix("/dev/shm/"))
        #endif
        try cache.set(Reader("a"), forKey: "k")
        #expect(try cache.value(Reader.self, forKey: "k") == Reader("a"))
        #expect(cache.policy == .low)
        // Opens another database of the same larder, and a snapshot. Each handle keeps the larder open.
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

    #if os(Linux)
        /// Runs in a separate process, which has no other larders.
        @Test("a larder starts only the threads that it needs") func threadsAreStartedOnDemand() async throws {
            let result = try await #require(processExitsWith: .success, observing: [\.standardOutputContent]) {
                try await onThread { try InMemoryTests.printThreads() }
            }
            let output = String(decoding: result.standardOutputContent, as: UTF8.self)
            #expect(
                output.split(separator: "\n").filter { $0.hasPrefix("threads ") } == [
                    "threads in memory: larder-maintain", "threads on the disk: larder-maintain larder-sync",
                    "threads after a checkpoint: larder-checkpoi larder-maintain larder-pace larder-sync",
                    "threads afterwards: ",
                ])
        }

        /// Returns the names of the threads of all larders of this process.
        private static func threads() throws -> [String] {
            try FileSystem.list("/proc/self/task").compactMap { number in
                let name = try? String(contentsOfFile: "/proc/self/task/\(number)/comm", encoding: .utf8)
                return name?.trimmingCharacters(in: .newlines)
            }.filter { $0.hasPrefix("larder-") }.sorted()
        }

        /// Prints the names of the threads once they are as expected: a thread sets its name itself, after it has
        /// started.
        private static func print(_ when: String, once expected: [String]) throws {
            while true {
                let names = try threads()
                if expected.allSatisfy(names.contains) {
                    return Swift.print("threads \(when): \(names.joined(separator: " "))")
                }
                nap()
            }
        }

        private static func printThreads() throws {
            let memory = try Cache.inMemory()
            for number in 0..<1_000 { try memory.set(number, forKey: "\(number)") }
            try print("in memory", once: ["larder-maintain"])
            memory.close()
            let temporary = try TemporaryDirectory(inMemory: true)
            let time = ManualTimeSource()
            var options = CacheOptions()
            options.timeSource = time
            let cache = try Cache(directory: temporary.path + "/larder", options: options)
            try cache.set(1, forKey: "a", durability: .always)
            try print("on the disk", once: ["larder-maintain", "larder-sync"])
            time.advance(milliseconds: 660_000)
            try print("after a checkpoint", once: ["larder-checkpoi", "larder-pace"])
            cache.close()
            try print("afterwards", once: [])
        }
    #endif

    @Test func aReleasedLarderInMemoryIsRemoved() throws {
        var cache: Cache? = try Cache.inMemory()
        let directory = try #require(cache?.directory)
        try cache?.set(1, forKey: "k")
        cache = nil
        #expect(!FileManager.default.fileExists(atPath: directory))
    }

    @Test func eachCallCreatesASeparateLarder() async throws {
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

    @Test func aFailedOpenLeavesNoFiles() throws {
        let before = try leftovers()
        expectError(.invalidArgument) { _ = try Cache.inMemory(named: "No Name") }
        var options = CacheOptions()
        options.bloomBitsPerKey = -1
        expectError(.invalidArgument) { _ = try Cache.inMemory(options: options) }
        #expect(try leftovers() == before)
    }

    /// A killed process cannot remove its directory; the next process that creates a larder in memory does.
    @Test func leftoversOfAKilledProcessAreRemoved() throws {
        // Gets the ID of a process that has exited.
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

    @Test func statisticsAreCountedPerDatabase() throws {
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
        // Requesting statistics does not count as a read.
        #expect(try books.statistics().hits == 3)
        books.close()
        expectError(.closed) { _ = try books.statistics() }
    }

    private func counts(_ cache: Cache) throws -> String {
        let of = try #require(try cache.statistics().databases[cache.name])
        return "\(of.hits) \(of.misses), \(of.writes) \(of.removals) \(of.purges)"
    }

    /// Regression test: a key that was not in memory was counted twice, or, if the read bypassed memory, not at all.
    @Test func everyRequestedKeyIsCountedOnce() throws {
        for change in [{ _ in }, { $0.decodedModels = false }, { $0.memoryBytes = 0 }]
            as [(inout CacheOptions) -> Void]
        {
            let work = try Workspace()
            let first = try work.cache("books", change)
            try first.set(["a": 1, "b": 2])
            try first.set(Note(), forKey: "note")
            first.close()
            let cache = try work.cache("books", change)
            let written = try #require(try cache.statistics().databases["books"]).writes
            func expect(_ reads: String, _ line: Int = #line) throws {
                #expect(try counts(cache) == "\(reads), \(written) 0 0", "line \(line)")
            }
            _ = try cache.values(Int.self, forKeys: ["a", "none"])
            try expect("1 1")
            _ = try cache.values(Int.self, forKeys: ["a", "none"])
            try expect("2 2")
            _ = try cache.values(Int.self, forKeys: ["b", "other", "a"], notFound: 0)
            try expect("4 3")
            _ = try cache.values(Note.self, forKeys: ["note", "third"])
            try expect("5 4")
            _ = try cache.values(Int.self, forKeys: ["a", "fourth"], fillCache: false)
            try expect("6 5")
            _ = try cache.contains("a")
            _ = try cache.info(forKey: "fifth")
            try expect("7 6")
            try cache.withSnapshot { _ = try $0.values(Int.self, forKeys: ["a", "none"]) }
            _ = try cache.entries(of: Data.self).map { try $0.bytes() }
            _ = try cache.keys()
            _ = try cache.count()
            try expect("7 6")
        }
    }

    @Test func everyKeyRequestedByAsynchronousCallsIsCountedOnce() async throws {
        for isCold in [false, true] {
            let cache = try reopened(isCold)
            let before = try counts(cache)
            _ = try await cache.values(Int.self, forKeys: ["a", "none"])
            _ = try await cache.values(Note.self, forKeys: ["note", "other"])
            _ = try await cache.value(Int.self, forKey: "a")
            _ = try await cache.value(Int.self, forKey: "third")
            #expect(before.hasPrefix("0 0, "))
            #expect(try counts(cache) == before.replacing("0 0, ", with: "3 3, ", maxReplacements: 1), "\(isCold)")
            try await cache.removeAll()
            // Wait until the cache is closed: a thread of the last call may keep the larder and its counters open.
            await cache.close()
        }
    }

    private final class Note: Codable { var text = "" }

    private func reopened(_ isCold: Bool) throws -> Cache {
        let first = try work.cache("books")
        try first.set(["a": 1, "b": 2])
        try first.set(Note(), forKey: "note")
        if isCold { first.close() }
        return isCold ? try work.cache("books") : first
    }

    @Test func aChangedLifetimeDoesNotCountAsAWrite() throws {
        let cache = try work.cache("books")
        try cache.set(1, forKey: "a")
        try cache.touch("a", policy: .low)
        try cache.touch("none", policy: .low)
        #expect(try counts(cache) == "0 0, 1 0 0")
        #expect(try cache.value(Int.self, forKey: "a", renewing: .high) == 1)
        #expect(try cache.value(Int.self, forKey: "a", renewing: .low) == 1)
        #expect(try cache.value(Int.self, forKey: "none", renewing: .low) == nil)
        #expect(try counts(cache) == "2 1, 1 0 0")
        try cache.increment("a")
        #expect(try cache.setIfAbsent(1, forKey: "b"))
        #expect(try !cache.setIfAbsent(1, forKey: "b"))
        #expect(try counts(cache) == "2 1, 3 0 0")
        try cache.update(Int.self, forKey: "a") { $0 = 5 }
        #expect(try counts(cache) == "3 1, 4 0 0")
    }

    /// Regression test: removing a missing entry was counted, and removing everything was not.
    @Test func removalsCountExistingEntriesOnly() throws {
        for change in [{ _ in }, { $0.memoryBytes = 0 }] as [(inout CacheOptions) -> Void] {
            let work = try Workspace()
            let first = try work.cache("books", change)
            try first.set((0..<9).map { ("k\($0)", $0) })
            first.close()
            let cache = try work.cache("books", change)
            func removed() throws -> [Int] {
                let of = try #require(try cache.statistics().databases["books"])
                #expect(of.hits + of.misses <= 2)
                return [of.removals, of.purges]
            }
            try cache.batch { batch in
                batch.remove("none")
                batch.remove("k0")
                try batch.set(1, forKey: "new")
            }
            #expect(try removed() == [1, 0])
            try cache.batch { $0.remove("k0") }
            try cache.remove("k0")
            try cache.remove(["k1", "none"])
            #expect(try removed() == [2, 0])
            #expect(try cache.removeValue(Int.self, forKey: "k2") == 2)
            try cache.update(Int.self, forKey: "k3") { $0 = nil }
            #expect(try removed() == [4, 0])
            try cache.set(1, forKey: "short", policy: .seconds(1))
            work.time.advance(milliseconds: 1_000)
            try cache.remove("short")
            try cache.removeExpired()
            #expect(try removed() == [4, 0])
            try cache.remove(prefix: "k")
            #expect(try removed() == [9, 0])
            #expect(try cache.removeAll(counting: true).entries == 1)
            #expect(try removed() == [10, 1])
            try cache.set(1, forKey: "a")
            try cache.removeAll()
            #expect(try removed() == [10, 2])
        }
    }

    @Test func theHitRatioIsNilWithoutReads() async throws {
        let cache = try work.cache()
        let statistics = try await cache.statistics()
        #expect(statistics.hitRatio == nil)
        #expect(statistics.entries == 0)
    }

    /// Foundation shows errors by `localizedDescription`, which is useless without `LocalizedError`.
    @Test func everyPublicErrorHasALocalizedDescription() throws {
        let cache = try work.cache()
        try cache.set("text", forKey: "k")
        let error = try #require(throws: LarderError.self) { try cache.value(Int.self, forKey: "k") }
        #expect(error.localizedDescription == error.description)
    }
}
