import LarderPlatform

/// A priority queue of the deadlines of keys, the nearest first, to find entries that expire.
///
/// It consists of a heap and a table. A deadline that was replaced stays in the heap until its time, and is then
/// ignored.
///
/// Not thread-safe: its owner guards it.
package struct DeadlineWatch<Key: Hashable> {
    private struct Item {
        let deadline: Int64
        let key: Key
    }

    private var deadlines: [Key: Int64] = [:]
    private var heap: [Item] = []

    package init() {}

    package var count: Int { deadlines.count }

    package func deadline(_ key: Key) -> Int64? { deadlines[key] }

    /// The keys that have a deadline, in no order.
    package var keys: some Collection<Key> { deadlines.keys }

    /// The earliest deadline, or one that was replaced and would have been earlier; nil if there is none.
    package var nearest: Int64? { heap.first?.deadline }

    /// Sets or replaces the deadline of a key; nil removes it.
    /// - Returns: the previous deadline.
    @discardableResult
    package mutating func set(_ key: Key, _ deadline: Int64?) -> Int64? {
        guard let deadline else {
            let old = deadlines.isEmpty ? nil : deadlines.removeValue(forKey: key)
            if old != nil { dropStale() }
            return old
        }
        let old = deadlines.updateValue(deadline, forKey: key)
        guard old != deadline else { return old }
        heap.append(Item(deadline: deadline, key: key))
        heap.raiseLast { $0.deadline < $1.deadline }
        dropStale()
        return old
    }

    /// Drops replaced deadlines when they are the majority.
    private mutating func dropStale() {
        if heap.count > 64, heap.count > 2 * deadlines.count { rebuild() }
    }

    private mutating func rebuild() {
        // A sorted array is a heap.
        heap = deadlines.map { Item(deadline: $0.value, key: $0.key) }.sorted { $0.deadline < $1.deadline }
    }

    package mutating func removeAll(where condition: (Key) -> Bool) {
        deadlines = deadlines.filter { !condition($0.key) }
        dropStale()
    }

    /// Keeps at most the `count` nearest deadlines, and all up to `time`. If the next deadline equals some of the
    /// nearest, drops these too.
    /// - Returns: the time from which all deadlines were dropped; nil if there are at most `count`.
    package mutating func keepNearest(_ count: Int, orUntil time: Int64) -> Int64? {
        guard count < deadlines.count else { return nil }
        let first = max(deadlines.values.sorted()[count], time + 1)
        deadlines = deadlines.filter { $0.value < first }
        rebuild()
        return first
    }

    package mutating func removeAll() { self = DeadlineWatch() }

    /// Removes and returns the next key whose deadline has come.
    package mutating func popDue(now: Int64) -> Key? {
        while let first = heap.first, first.deadline <= now {
            popFirst()
            if deadlines[first.key] == first.deadline {
                deadlines[first.key] = nil
                return first.key
            }
        }
        return nil
    }

    private mutating func popFirst() {
        let last = heap.removeLast()
        guard !heap.isEmpty else { return }
        heap[0] = last
        heap.lowerFirst { $0.deadline < $1.deadline }
    }
}
