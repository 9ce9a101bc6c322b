import Larder
import LarderEngine
import LarderTestSupport
import Synchronization
import Testing

/// The number of models that the current test has released.
private let letGo = Atomic<Int>(0)

/// A model that reads from the cache and writes to it when it is released.
private struct Witness: Codable, Sendable {
    final class Bell: Sendable {
        let cache: Cache?
        let number: Int
        init(_ cache: Cache?, _ number: Int) {
            self.cache = cache
            self.number = number
        }
        deinit {
            guard let cache else { return }
            // Use keys of every shard, so that one of them is in the shard that is locked.
            for other in 0..<32 {
                _ = try? cache.value(Int.self, forKey: "other \(other)")
                try? cache.set(other, forKey: "other \(other)")
            }
            letGo.add(1, ordering: .relaxed)
        }
    }

    static let current = Current()
    final class Current: Sendable {
        private let held = Mutex<Cache?>(nil)
        var cache: Cache? {
            get { held.withLock { $0 } }
            set { held.withLock { $0 = newValue } }
        }
    }

    let bell: Bell

    init(_ number: Int) { bell = Bell(nil, number) }
    init(from decoder: any Decoder) throws {
        bell = Bell(Self.current.cache, try decoder.singleValueContainer().decode(Int.self))
    }
    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(bell.number)
    }
}

/// Tests that a decoded model is released while no lock is held, whichever way its entry is removed. The model's
/// deinitializer may call the cache: with a lock held, these tests would hang.
@Suite(.serialized, .timeLimit(.minutes(10))) struct ModelReleaseTests {
    let work: Workspace

    init() throws { work = try Workspace() }

    /// Makes a cache keep `count` models, and calls `end`. Expects that all, or at least `atLeast`, are released.
    private func check(
        _ count: Int = 1, atLeast: Int? = nil, memoryBytes: Int = 16 << 20,
        _ end: (Cache) throws -> Void
    ) throws {
        let cache = try work.cache("witness", policy: .high) { $0.memoryBytes = memoryBytes }
        Witness.current.cache = cache
        for number in 0..<count {
            try cache.set(Witness(number), forKey: "k\(number)")
            _ = try cache.value(Witness.self, forKey: "k\(number)")
        }
        Witness.current.cache = nil
        let before = letGo.load(ordering: .relaxed)
        try end(cache)
        let gone = letGo.load(ordering: .relaxed) - before
        #expect(gone >= atLeast ?? count && gone <= count)
        cache.close()
    }

    @Test func overwritingReleasesModelsOutsideLocks() throws { try check { try $0.set(5, forKey: "k0") } }

    @Test func overwritingInABatchReleasesModelsOutsideLocks() throws {
        try check(20) { cache in
            try cache.batch { batch in for number in 0..<20 { try batch.set(number, forKey: "k\(number)") } }
        }
    }

    @Test func aNewDeadlineReleasesModelsAfterUnlocking() throws { try check { try $0.touch("k0", policy: .never) } }

    @Test func removingReleasesModelsOutsideLocks() throws { try check { try $0.remove("k0") } }

    @Test func removingManyKeysReleasesModelsOutsideLocks() throws {
        try check(20) { try $0.remove((0..<20).map { "k\($0)" }) }
    }

    @Test func removingAPrefixReleasesModelsOutsideLocks() throws { try check(20) { try $0.remove(prefix: "k") } }

    @Test func purgingReleasesModelsOutsideLocks() throws { try check(20) { try $0.removeAll() } }

    @Test func deletingReleasesModelsOutsideLocks() throws { try check(20) { try $0.delete() } }

    @Test func expiryFoundByAReadReleasesModelsOutsideLocks() throws {
        try check { cache in
            try cache.sweep()
            work.time.advance(milliseconds: 3_600_000)
            #expect(try cache.value(Int.self, forKey: "k0") == nil)
            #expect(try cache.values(Int.self, forKeys: ["k0"]).isEmpty)
        }
    }

    @Test func expiryBeforeACheckpointReleasesModelsOutsideLocks() throws {
        try check(20) { cache in
            work.time.advance(milliseconds: 3_600_000)
            try cache.sweep()
        }
    }

    @Test func sweepingReleasesModelsOutsideLocks() throws {
        try check(20) { cache in
            try cache.sweep()
            work.time.advance(milliseconds: 7_200_000)
            for _ in 0..<3 { try cache.sweep() }
            try cache.removeExpired()
        }
    }

    @Test func evictionReleasesModelsOutsideLocks() throws {
        try check(20, atLeast: 10, memoryBytes: 400_000) { cache in
            // Stores more models than fit into memory.
            for number in 0..<2_000 {
                try cache.set(number, forKey: "much \(number)")
                _ = try cache.value(Int.self, forKey: "much \(number)")
            }
        }
    }

    @Test func decodingAnotherModelReleasesTheFirstOutsideLocks() throws {
        try check { cache in _ = try cache.value(Int.self, forKey: "k0") }
    }

    @Test func shutdownReleasesModelsOutsideLocks() throws {
        let cache = try work.cache("witness", policy: .high)
        let other = try work.cache("another", policy: .high)
        Witness.current.cache = cache
        try cache.set(Witness(1), forKey: "k")
        _ = try cache.value(Witness.self, forKey: "k")
        Witness.current.cache = nil
        let before = letGo.load(ordering: .relaxed)
        other.close()
        #expect(letGo.load(ordering: .relaxed) == before)
        cache.close()
        #expect(letGo.load(ordering: .relaxed) == before + 1)
    }

    /// Runs concurrent readers and writers, with models whose release calls the cache. Each key's model is replaced, so
    /// at least ten are released.
    @Test func concurrentWritesReleaseModelsOutsideLocks() async throws {
        let cache = try work.cache("witness", policy: .high) { $0.memoryBytes = 1 << 20 }
        let before = letGo.load(ordering: .relaxed)
        Witness.current.cache = cache
        defer { Witness.current.cache = nil }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for task in 0..<4 {
                group.addTask {
                    for round in 0..<100 {
                        let key = "k\((task * 7 + round) % 10)"
                        try cache.set(Witness(round), forKey: key)
                        _ = try cache.value(Witness.self, forKey: key)
                    }
                }
            }
            try await group.waitForAll()
        }
        #expect(letGo.load(ordering: .relaxed) - before >= 10)
        Witness.current.cache = nil
        await cache.close()
    }

    /// A failed commit drops all its entries from memory, and with them their models.
    @Test func failedCommitsReleaseModelsOutsideLocks() throws {
        final class Disk: Sendable {
            let isFull = Atomic<Bool>(false)
        }
        let disk = Disk()
        var options = EngineOptions()
        options.backgroundMaintenance = false
        options.beforeCommit = { () throws(LarderError) in
            if disk.isFull.load(ordering: .relaxed) { throw LarderError(.io, "no space left", operation: "write") }
        }
        let engine = try Engine.open(work.directory, options: options, time: work.time)
        let cache = try work.cache("witness", policy: .high)
        Witness.current.cache = cache
        try cache.set(Witness(1), forKey: "k")
        _ = try cache.value(Witness.self, forKey: "k")
        Witness.current.cache = nil
        let before = letGo.load(ordering: .relaxed)
        disk.isFull.store(true, ordering: .relaxed)
        #expect(throws: LarderError.self) { try cache.set(5, forKey: "k") }
        #expect(letGo.load(ordering: .relaxed) == before + 1)
        disk.isFull.store(false, ordering: .relaxed)
        #expect(try cache.value(Int.self, forKey: "k") == 1)
        cache.close()
        engine.shutdown()
    }
}
