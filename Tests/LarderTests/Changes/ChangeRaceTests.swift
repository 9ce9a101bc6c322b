import Larder
import LarderTestSupport
import Testing

/// Tests that an observer that receives all changes knows the stored state, despite concurrent writes.
@Suite(.timeLimit(.minutes(10))) struct ChangeRaceTests {
    private static let end = "~end"

    /// Returns the state that an observer knows after it has applied the reported changes, and how often it fell behind
    /// and read everything again.
    private func follow(_ cache: Cache, _ changes: DecodedChanges<Int>) async throws -> (
        known: [String: Int], gaps: Int
    ) {
        var known: [String: Int] = [:]
        var gaps = 0
        for try await change in changes {
            switch change.kind {
            case .stored: known[change.key ?? ""] = try change.value
            case .removed, .evicted, .expired: known[change.key ?? ""] = nil
            case .purged: known = [:]
            case .fellBehind:
                gaps += 1
                known = try await everything(cache)
            }
            if known[Self.end] != nil { break }
        }
        return (known, gaps)
    }

    private func everything(_ cache: Cache) async throws -> [String: Int] {
        while true {
            do {
                return try await cache.entries(of: Int.self).dictionary()
            } catch {
                // An enumeration ends when the database is emptied.
                if error.code != .purged { throw error }
            }
        }
    }

    @Test(arguments: [4, 1_024])
    func observersOfConcurrentWritesEndWithTheStoredState(_ bufferMax: Int) async throws {
        let work = try Workspace()
        let time = work.time
        let seed = testSeed()
        let cache = try work.cache(policy: .high)
        let following = try cache.decodedChanges(Int.self, bufferMax: bufferMax)
        let follower = Task { try await follow(cache, following) }
        let rounds = 400 * (TestSetting.rounds.number() ?? 1)
        let errors = Recorder<String>()
        let writers = Task.detached {
            onThreads(5) { thread in
                var random = SeededGenerator(seed: seed &+ UInt64(thread))
                do {
                    for round in 0..<rounds {
                        try Self.change(cache, time, thread, round, &random)
                    }
                } catch {
                    errors.add("\(error)")
                }
            }
        }
        await writers.value
        #expect(errors.all == [])
        // Report all expiries so far. Time does not advance after this.
        try await cache.sweep()
        try await cache.set(1, forKey: Self.end)
        let (known, gaps) = try await follower.value
        let stored = try await everything(cache)
        #expect(known == stored, "seed \(seed), \(gaps) gaps")
    }

    private static func change(
        _ cache: Cache, _ time: ManualTimeSource, _ thread: Int, _ round: Int, _ random: inout SeededGenerator
    ) throws {
        let key = "k\(random.below(24))"
        if thread == 0 {
            if round % 20 == 0 { time.advance(milliseconds: 500) }
            try cache.sweep()
            return
        }
        switch random.below(40) {
        case 0: try cache.removeAll()
        case 1: try cache.remove(prefix: "k1")
        case 2: try cache.removeExpired()
        case 3..<8: try cache.remove(key)
        case 8..<16: try cache.set(round, forKey: key, policy: .seconds(1))
        case 16..<20: try cache.touch(key, policy: .seconds(Double(random.below(4) + 1)))
        case 20..<24: try cache.set([key: round, "x0": round, "x1": round])
        case 24..<28: try cache.increment(key)
        case 28..<31: _ = try cache.removeValue(Int.self, forKey: key)
        default: try cache.set(thread * 10_000 + round, forKey: key)
        }
    }
}
