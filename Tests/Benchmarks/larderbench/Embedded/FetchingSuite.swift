import Dispatch
import Larder
import LarderPlatform
import Synchronization

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The costs of fetching in one process, in three cases: hot reads; many tasks that request one key; a thousand keys
/// that were stored together and whose origin is slow.
final class FetchingSuite: Suite {
    static let hotTable = "Embedded: a task reads 1000 hot models, about 100 B of JSON"
    static let value = "value(forKey:)"
    static let fetch = "value(forKey:fetch:)"

    static let flightTable = "Embedded: 1000 tasks ask for one key"
    static let cold = "value(forKey:fetch:), nothing is stored"
    static let stored = "value(forKey:fetch:), a fresh value is stored"

    static let warmedTable = "Embedded: 1000 keys stored together for 4 s, read by 200 tasks; the origin takes 1 s"

    /// The options with which the keys are stored and fetched.
    enum Warmed: String, CaseIterable {
        case plain = "without grace"
        case grace = "grace"
        case ahead = "grace, refresh ahead"
        case spread = "grace, refresh ahead, jitter 50 %"

        var grace: Duration { self == .plain ? .zero : .seconds(60) }
        var jitter: Int { self == .spread ? 50 : 0 }
        var refreshesAhead: Bool { self == .ahead || self == .spread }
    }

    /// The calls of many tasks.
    private final class Calls: Sendable {
        /// The times at which the origin was asked.
        let times = Mutex<[Double]>([])
        let latencies = Mutex(LatencyHistogram())
    }

    private static let keyCount = 1000
    private static let taskCount = 1000

    private let options: BenchOptions
    private let tree: TemporaryTree
    private let keys = (0..<keyCount).map(Keys.text)

    init(_ options: BenchOptions, _ tree: TemporaryTree) {
        self.options = options
        self.tree = tree
    }

    func runRound(_ round: Int, into results: Results) throws(BenchError) {
        Progress.note("  fetching")
        do {
            try withCache(policy: .never) { cache in
                try measureHot(cache, round, into: results)
                try measureFlight(cache, into: results)
            }
            for kind in options.isQuick ? [] : Warmed.allCases {
                try Interruption.check()
                Progress.note("  \(Self.warmedTable): \(kind.rawValue)")
                try measureWarmed(kind, into: results)
            }
        } catch {
            try Interruption.check()
            results.fail("fetching", error)
        }
    }

    private func withCache(
        policy: UpdatePolicy, grace: Duration = .zero, jitter: Int = 0, _ body: (Cache) throws -> Void
    ) throws {
        let directory = try tree.makeDirectory("fetching")
        defer { TemporaryTree.remove(directory) }
        let cache = try Cache(
            named: "bench", policy: policy, grace: grace, jitter: jitter, directory: directory,
            options: CacheOptions(durability: .os))
        defer { cache.close() }
        try body(cache)
    }

    /// Runs a task and waits for its end.
    private func wait<Result: Sendable>(_ body: @escaping @Sendable () async throws -> Result) throws -> Result {
        let result = Mutex<Swift.Result<Result, any Error>?>(nil)
        let isDone = DispatchSemaphore(value: 0)
        Task.detached {
            do {
                let value = try await body()
                result.withLock { $0 = .success(value) }
            } catch {
                result.withLock { $0 = .failure(error) }
            }
            isDone.signal()
        }
        isDone.wait()
        guard let result = result.withLock({ $0 }) else { throw BenchError("a task has no result") }
        return try result.get()
    }

    // MARK: Hot reads

    private func measureHot(_ cache: Cache, _ round: Int, into results: Results) throws {
        let keys = keys
        for (index, key) in keys.enumerated() { try cache.set(ModelSuite.Package(index), forKey: key) }
        for slice in 0..<40 {
            for kind in [Self.value, Self.fetch].rotated(by: round + slice) {
                let figures = try Stopwatch.measureOnly(operations: 20 * keys.count) {
                    try wait {
                        for _ in 0..<20 { try await Self.read(keys, cache, fetches: kind == Self.fetch) }
                    }
                }
                // The first slice of each kind only warms up.
                if slice > 0 { results.add(Self.hotTable, kind, figures) }
            }
        }
    }

    private static func read(_ keys: [String], _ cache: Cache, fetches: Bool) async throws {
        for (index, key) in keys.enumerated() {
            let model: ModelSuite.Package?
            if fetches {
                model = try await cache.value(forKey: key) { () async throws -> ModelSuite.Package in
                    throw BenchError("a stored key was fetched")
                }
            } else {
                model = try await cache.value(forKey: key)
            }
            guard model?.installedSize == index * 37 else { throw BenchError("a model was read wrong") }
        }
    }

    // MARK: Many tasks, one key

    private func measureFlight(_ cache: Cache, into results: Results) throws {
        let rounds = 50
        for kind in [Self.cold, Self.stored] {
            let calls = Calls()
            let figures = try Stopwatch.measureOnly(operations: rounds * Self.taskCount) {
                for round in 0..<rounds {
                    try wait {
                        try await withThrowingTaskGroup(of: Int.self) { group in
                            for _ in 0..<Self.taskCount {
                                group.addTask {
                                    try await cache.value(forKey: "flight:\(round)") { () async throws -> Int in
                                        calls.times.withLock { $0.append(Clocks.monotonic()) }
                                        try await Task.sleep(for: .milliseconds(5))
                                        return round
                                    }
                                }
                            }
                            for try await value in group where value != round {
                                throw BenchError("a task got another key's value")
                            }
                        }
                    }
                }
            }
            let expected = kind == Self.cold ? rounds : 0
            let count = calls.times.withLock { $0.count }
            guard count == expected else {
                throw BenchError("the origin was asked \(count) times, not \(expected) times")
            }
            results.add(Self.flightTable, kind, figures)
        }
    }

    // MARK: Keys that were stored together

    private static let seconds = 12.0
    private static let readers = 200

    private func measureWarmed(_ kind: Warmed, into results: Results) throws {
        let policy = UpdatePolicy.every(4) ?? .highest
        try withCache(policy: policy, grace: kind.grace, jitter: kind.jitter) { cache in
            let keys = keys
            for (index, key) in keys.enumerated() { try cache.set(index, forKey: key) }
            var fetchOptions = FetchOptions()
            fetchOptions.refreshesAhead = kind.refreshesAhead
            let (options, end) = (fetchOptions, Clocks.monotonic() + Self.seconds)
            let calls = Calls()
            try wait {
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for reader in 0..<Self.readers {
                        group.addTask {
                            var generator = SplitMix(seed: UInt64(reader))
                            while Clocks.monotonic() < end {
                                let index = Int.random(in: 0..<keys.count, using: &generator)
                                let start = Clocks.monotonic()
                                let value = try await cache.value(forKey: keys[index], options: options) {
                                    () async throws -> Int in
                                    calls.times.withLock { $0.append(Clocks.monotonic()) }
                                    try await Task.sleep(for: .seconds(1))
                                    return index
                                }
                                guard value == index else { throw BenchError("a task got another key's value") }
                                let nanoseconds = UInt64((Clocks.monotonic() - start) * 1e9)
                                calls.latencies.withLock { $0.add(nanoseconds) }
                                try await Task.sleep(for: .milliseconds(10))
                            }
                        }
                    }
                    try await group.waitForAll()
                }
            }
            let times = calls.times.withLock { $0 }
            let (all, begin) = (calls.latencies.withLock { $0 }, end - Self.seconds)
            let peak = Dictionary(grouping: times) { Int(($0 - begin) * 10) }.values.map(\.count).max() ?? 0
            results.add(
                Self.warmedTable, kind.rawValue,
                [
                    .reloads: Double(times.count) / Self.seconds, .peakReloads: Double(peak * 10),
                    .p50: Double(all.percentile(0.5)) / 1e6, .p99: Double(all.percentile(0.99)) / 1e6,
                    .longest: Double(all.maximum) / 1e6,
                ])
        }
    }
}
