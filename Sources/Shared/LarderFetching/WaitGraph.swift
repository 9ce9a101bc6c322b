import LarderPlatform

/// The wait-for graph of running fetches. Detects a deadlock before a caller blocks.
///
/// Only calls from within a fetching closure are recorded; other calls cannot cause a deadlock.
struct WaitGraph {
    /// `waits[a][b]` is the number of calls within the closure of key `a` that wait for key `b`.
    private var waits: [FetchName: [FetchName: Int]] = [:]

    /// Records that a call within the closures of the keys `closures` waits for the keys `awaited`.
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

    /// Whether the closures of the keys `awaited` wait, directly or indirectly, for one of the keys `closures`.
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

/// The lock of a ``FlightTable``, and the wait-for graph that it guards too.
///
/// Thread-safe. `@unchecked Sendable`: ``waits`` is guarded by `lock`.
final class FlightLock: @unchecked Sendable {
    private let lock = Lock()
    /// Accessed with the lock held.
    var waits = WaitGraph()

    func withLock<Result, Failure: Error>(_ body: () throws(Failure) -> Result) throws(Failure) -> Result {
        try lock.withLock(body)
    }
}
