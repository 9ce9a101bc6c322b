import Foundation
import LarderPlatform
import LarderTestSupport
import Synchronization
import Testing

@testable import Larder

/// Tests that blocking work runs outside Swift's cooperative thread pool, and all other work in it.
///
/// Serialized, because tests block all of the process's threads for the library's blocking work.
@Suite(.serialized) struct AsyncTests {
    let work: Workspace

    init() throws { work = try Workspace() }

    @Test func asynchronousCallsBehaveLikeSynchronousOnes() async throws {
        let cache = try await Cache(
            named: "books", policy: .high, directory: work.directory, options: work.options())
        try await cache.set(["a:1": 1, "a:2": 2, "b": 3])
        try await cache.set(1, forKey: "short", policy: .seconds(5))
        try await cache.set(1, forKey: "shorter", policy: .seconds(0.5))
        work.time.advance(milliseconds: 2_000)
        #expect(try await cache.sweep() == 1)
        work.time.advance(milliseconds: 3_000)
        #expect(try await cache.removeExpired().entries == 1)
        #expect(try await cache.keys() == ["a:1", "a:2", "b"])
        #expect(try await cache.values(Int.self, forKeys: ["b", "none"]) == ["b": 3])
        #expect(try await cache.values(Int.self, forKeys: ["b", "none"], notFound: 0) == [3, 0])
        #expect(try await cache.increment("b") == 4)
        try await cache.update(Int.self, forKey: "b") { $0 = ($0 ?? 0) * 2 }
        #expect(try await cache.replace(8, with: 9, forKey: "b"))
        #expect(try await !cache.setIfAbsent(1, forKey: "b"))
        #expect(try await cache.value(Int.self, forKey: "b", renewing: .never) == 9)
        #expect(try await cache.timeToLive(forKey: "b") == .never)
        #expect(try await cache.removeValue(Int.self, forKey: "b") == 9)
        try await cache.batch { try $0.set(5, forKey: "c") }
        let before = try await cache.snapshot()
        #expect(try await cache.remove("c"))
        #expect(try await before.bytes(forKey: "c") == Array("5".utf8))
        #expect(try await before.count() == 3)
        await before.close()
        #expect(try await cache.withSnapshot { try await $0.keys() } == ["a:1", "a:2"])
        #expect(try await cache.remove(prefix: "a:").entries == 2)
        #expect(try await cache.removeAll(counting: true).entries == 0)
        try await cache.delete()
        let error = await #expect(throws: LarderError.self) { try await cache.removeAll() }
        #expect(error?.code == .deleted)
        _ = try work.cache("x")
        #expect(try await Cache.delete(named: "x", directory: work.directory))
        #expect(try await Cache.delete(named: "x", directory: work.directory) == false)
        _ = try work.cache("y")
        #expect(try await Cache.deleteAll(directory: work.directory) == ["y"])
    }

    @Test func manyConcurrentCallsAllFinish() async throws {
        let cache = try work.cache()
        for group in 0..<40 {
            for index in 0..<5 { try await cache.set(index, forKey: "\(group):\(index)") }
        }
        let removed = try await withThrowingTaskGroup(of: Int.self) { tasks in
            for group in 0..<40 {
                tasks.addTask { try await cache.remove(prefix: "\(group):").entries ?? 0 }
            }
            return try await tasks.reduce(0, +)
        }
        #expect(removed == 200)
        #expect(try await cache.count() == 0)
    }

    /// Enumerates more entries than are read ahead at a time, with all options of an enumeration.
    @Test func entriesAreEnumeratedInOrder() async throws {
        let cache = try work.cache()
        try await cache.set((0..<500).map { (key: String(1_000 + $0), value: $0) })
        try await cache.set("text", forKey: "9999")
        var keys: [String] = []
        for try await entry in cache.entries(of: Int.self, from: "1100", to: "1400") {
            #expect(try entry.value() == Int(entry.key).map { $0 - 1_000 })
            #expect(try entry.info().rule == .governed)
            keys.append(entry.key)
        }
        let expected: [String] = (1_100..<1_400).map { "\($0)" }
        #expect(keys == expected)
        var backward: [String] = []
        for try await entry in cache.entries(of: Int.self, from: "1100", to: "1400", backward: true, limit: 250) {
            backward.append(entry.key)
        }
        #expect(backward == expected[50...].reversed())
        let even = cache.entries(of: Int.self, to: "1500").filter { try $0.value() % 2 == 0 }
        #expect(try await even.count() == 250)
        #expect(try await even.values().last == 498)
        #expect(try await even.dictionary()["1002"] == 2)
        #expect(try await even.keys().first == "1000")
        #expect(try await even.map { try $0.value() }.count == 250)
        // Visited entries stay readable, unlike in a synchronous enumeration.
        var first: CacheEntry<Int>?
        for try await entry in even where first == nil { first = entry }
        #expect(try first?.value() == 0)
        let error = await #expect(throws: LarderError.self) { try await cache.entries(of: Int.self).values() }
        #expect(error?.code == .decoding)
        let limit = await #expect(throws: LarderError.self) {
            try await cache.entries(of: Int.self, limit: -1).values()
        }
        #expect(limit?.code == .invalidArgument)
        // An enumeration that was stopped early does not keep the larder open.
        for try await _ in cache.entries(of: Int.self) { break }
        await cache.close()
        let again = try await Cache(named: "books", directory: work.directory)
        await again.close()
    }

    /// Concurrent writes are not visible; entries that expire during the enumeration are skipped, even if they were
    /// read ahead.
    @Test func anEnumerationDoesNotShowConcurrentWrites() async throws {
        let cache = try work.cache()
        try await cache.set((0..<400).map { (key: String(1_000 + $0), value: $0) })
        try await cache.set(1, forKey: "1001", policy: .seconds(1))
        var met: [String] = []
        for try await entry in cache.entries(of: Int.self) {
            if met.isEmpty {
                try await cache.remove("1300")
                try await cache.set(1, forKey: "1000a")
                work.time.advance(milliseconds: 1_000)
            }
            met.append(entry.key)
        }
        #expect(met == (1_000..<1_400).filter { $0 != 1_001 }.map(String.init))
    }

    // MARK: Threads

    /// While all threads for blocking work wait at a gate, all blocking calls wait, but other tasks continue.
    @Test func blockingWorkDoesNotBlockTheCooperativePool() async throws {
        let cache = try work.cache { $0.memoryBytes = 0 }
        try await cache.set((0..<300).map { (key: String(1_000 + $0), value: $0) })
        let snapshot = try await cache.snapshot()
        let calls: [@Sendable () async throws -> Void] = [
            { for try await _ in cache.entries(of: Int.self) {} },
            { for try await _ in cache.entries(of: Int.self) {} },
            { for try await _ in snapshot.entries(of: Int.self) {} },
            { _ = try await cache.entries(of: Int.self).count() },
            { _ = try await cache.keys() }, { _ = try await cache.count() }, { _ = try await snapshot.count() },
            { _ = try await snapshot.value(Int.self, forKey: "1000") },
            { _ = try await cache.snapshot() }, { try await cache.set(1, forKey: "k") },
            { _ = try await cache.increment("n") }, { try await cache.remove("1001") },
            { try await cache.batch { try $0.set(1, forKey: "b") } }, { try await cache.setPolicy(.low) },
            { _ = try await cache.removeExpired() }, { _ = try await cache.sweep() },
            { try await cache.update(Int.self, forKey: "u") { $0 = 1 } },
            { _ = try await Cache.databases(in: cache.directory) },
        ]
        let gate = await Self.holdAllThreads()
        let finished = Guarded(0)
        let tasks = calls.map { call in
            Task {
                try await call()
                finished.with { $0 += 1 }
            }
        }
        // There are more calls than the pool has threads, but this task continues to run.
        for _ in 0..<2_000 { await Task.yield() }
        #expect(finished.value == 0)
        gate.open()
        for task in tasks { try await task.value }
        #expect(finished.value == calls.count)
    }

    /// Reads from memory do not use the threads for blocking work.
    @Test func readsFromMemoryDoNotUseTheThreadsForBlockingWork() async throws {
        let cache = try work.cache()
        try await cache.set(Reader("a"), forKey: "k")
        try await cache.set([1, 2], forKey: "list")
        for _ in 0..<2 { _ = try await cache.value(Reader.self, forKey: "k") }
        #expect(try await cache.value(Reader.self, forKey: "none") == nil)
        let gate = await Self.holdAllThreads()
        #expect(try await cache.value(Reader.self, forKey: "k") == Reader("a"))
        #expect(try await cache.value([Int].self, forKey: "list") == [1, 2])
        #expect(try await cache.value(Reader.self, forKey: "none") == nil)
        #expect(try await cache.bytes(forKey: "list") == Array("[1,2]".utf8))
        #expect(try await cache.contains("k"))
        #expect(try await cache.info(forKey: "k")?.codec == .json)
        #expect(try await cache.timeToLive(forKey: "k") == .milliseconds(60_000))
        #expect(try await cache.values(Reader.self, forKeys: ["k", "none"]) == ["k": Reader("a")])
        #expect(try await cache.values(Reader.self, forKeys: ["k"], notFound: Reader("b")) == [Reader("a")])
        gate.open()
    }

    /// Makes all of the library's threads for blocking work wait at a gate.
    private static func holdAllThreads() async -> Gate {
        let gate = Gate(isClosed: true)
        for _ in 0..<BlockingWork.threadsMax {
            Task { await BlockingWork.run { gate.pass() } }
        }
        while gate.waitingCount < BlockingWork.threadsMax { await Task.yield() }
        return gate
    }
}
