import LarderPlatform

/// Which running closures wait for which keys: for who is about to wait for a key that, in the end, waits for him.
///
/// Only callers within a closure that fetches are noted; all others cost nothing.
struct WaitGraph {
    /// How many callers within the closure of a key wait for another key.
    private var waits: [FetchName: [FetchName: Int]] = [:]

    /// Notes that the closures of some keys wait for others.
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

    /// Whether who waits for `awaited` waits, by way of others, for one of `closures`.
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

/// The lock of a table of fetches, and what it guards beside them.
///
/// Thread-safe. The proof for `@unchecked Sendable`: ``waits`` is read and written with the lock held.
final class FlightLock: @unchecked Sendable {
    private let lock = Lock()
    /// With the lock held.
    var waits = WaitGraph()

    func withLock<Result, Failure: Error>(_ body: () throws(Failure) -> Result) throws(Failure) -> Result {
        try lock.withLock(body)
    }
}
