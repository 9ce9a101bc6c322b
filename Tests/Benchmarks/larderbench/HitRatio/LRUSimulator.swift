/// Evicts the least recently used key.
struct LRUSimulator: CacheSimulator {
    private let capacity: Int
    private var queue: KeyQueue

    init(capacity: Int, universe: Int) {
        self.capacity = max(capacity, 1)
        queue = KeyQueue(universe: universe)
    }

    var count: Int { queue.count }

    mutating func access(_ key: Int) -> Bool {
        let isHit = queue.contains(key)
        if isHit { queue.remove(key) } else if queue.count >= capacity { _ = queue.popOldest() }
        queue.push(key)
        return isHit
    }
}
