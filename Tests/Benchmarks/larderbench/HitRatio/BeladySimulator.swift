/// The optimum (Belady, "A study of replacement algorithms for a virtual-storage computer", 1966). It knows the trace,
/// and keeps the keys whose next requests are nearest. It does not store a new key whose next request is later than
/// those of all stored keys. So no policy can do better, not even one that may refuse to store a key.
struct BeladySimulator: CacheSimulator {
    private let capacity: Int
    /// For each position of the trace, the position of the next request for the same key.
    private let next: [Int]
    /// For each stored key, the position of its next request; -1 for other keys.
    private var due: [Int]
    private var position = 0
    private var farthest = MaximumHeap()
    private let trace: [Int32]
    private(set) var count = 0

    init(capacity: Int, universe: Int, trace: [Int32]) {
        self.capacity = max(capacity, 1)
        self.trace = trace
        due = .init(repeating: -1, count: universe)
        var seen = [Int](repeating: -1, count: universe)
        var next = [Int](repeating: 0, count: trace.count)
        for position in trace.indices.reversed() {
            let key = Int(trace[position])
            // A key that is not requested again gets a unique position after the end of the trace.
            next[position] = seen[key] >= 0 ? seen[key] : trace.count + key
            seen[key] = position
        }
        self.next = next
    }

    mutating func access(_ key: Int) -> Bool {
        let again = next[position]
        position += 1
        if due[key] >= 0 {
            hold(key, again)
            return true
        }
        if count < capacity {
            count += 1
            hold(key, again)
            return false
        }
        dropStale()
        guard let last = farthest.first, last > again else { return false }
        farthest.removeFirst()
        due[owner(last)] = -1
        hold(key, again)
        return false
    }

    private mutating func hold(_ key: Int, _ again: Int) {
        due[key] = again
        farthest.insert(again)
    }

    /// The key requested at a position.
    private func owner(_ place: Int) -> Int { place < trace.count ? Int(trace[place]) : place - trace.count }

    /// Removes outdated positions from the heap. Their keys have been requested in the meantime.
    private mutating func dropStale() {
        while let last = farthest.first, due[owner(last)] != last { farthest.removeFirst() }
    }
}

/// A heap of numbers that returns the greatest.
struct MaximumHeap {
    private var items: [Int] = []

    var first: Int? { items.first }

    mutating func insert(_ item: Int) {
        items.append(item)
        var child = items.count - 1
        while child > 0, items[(child - 1) / 2] < items[child] {
            items.swapAt(child, (child - 1) / 2)
            child = (child - 1) / 2
        }
    }

    mutating func removeFirst() {
        guard let last = items.popLast(), !items.isEmpty else { return }
        items[0] = last
        var parent = 0
        while true {
            var child = 2 * parent + 1
            guard child < items.count else { return }
            if child + 1 < items.count, items[child + 1] > items[child] { child += 1 }
            guard items[child] > items[parent] else { return }
            items.swapAt(child, parent)
            parent = child
        }
    }
}
