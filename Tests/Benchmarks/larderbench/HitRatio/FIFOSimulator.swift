/// FIFO: evicts the key that was stored first.
struct FIFOSimulator: CacheSimulator {
    private let capacity: Int
    private var queue: KeyQueue

    init(capacity: Int, universe: Int) {
        self.capacity = max(capacity, 1)
        queue = KeyQueue(universe: universe)
    }

    var count: Int { queue.count }

    mutating func access(_ key: Int) -> Bool {
        if queue.contains(key) { return true }
        if queue.count >= capacity { _ = queue.popOldest() }
        queue.push(key)
        return false
    }
}
