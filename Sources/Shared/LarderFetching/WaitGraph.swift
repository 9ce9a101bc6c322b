import LarderPlatform

/// The wait-for graph of running fetches. Detects a deadlock before a caller blocks.
///
/// Only callers within a fetching closure are recorded; all others cost nothing.
struct WaitGraph {
    /// For each key, the number of callers within its closure that wait for each other key.
    private var waits: [FetchName: [FetchName: Int]] = [:]

    /// Records that the closures of some keys wait for others.
    mutating func add(_ closures: [FetchName], _ awaited: [FetchName]) {
        for closure in closures {
            for name in awaited { waits[closure, default: [:]][name, default: 0] += 1 }
        }
    }

    mutating func remove(_ closures: [FetchName], _ awaited: [FetchName]) {
        for closure in closures {
            guard var others = waits[closure] else { continue }
            for name in awaited { others[name] = others[name].flatMap { $0 > 1 ? $0 - 1 : nil } }
            waits[closure] = others.isEmpty ? nil : others
        }
    }

    /// Whether the waiters for `awaited` wait, directly or indirectly, for one of `closures`.
    func leads(from awaited: [FetchName], to closures: [FetchName]) -> Bool {
        var seen = Set(awaited)
        var next = awaited
        while let name = next.popLast() {
            if closures.contains(name) { return true }
            for (other, _) in waits[name] ?? [:] where seen.insert(other).inserted { next.append(other) }
        }
        return false
    }
}

/// The lock of a table of fetches, and the wait-for graph that it also guards.
///
/// Thread-safe. `@unchecked Sendable`: ``waits`` is guarded by `lock`.
final class FlightLock: @unchecked Sendable {
    private let lock = Lock()
    /// Called with `lock` held.
    var waits = WaitGraph()

    func withLock<Result, Failure: Error>(_ body: () throws(Failure) -> Result) throws(Failure) -> Result {
        try lock.withLock(body)
    }
}
