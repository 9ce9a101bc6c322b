/// SIEVE (Zhang, Yang, Yue, Vigfusson and Rashmi, "SIEVE is Simpler than LRU: an Efficient Turn-Key Eviction Algorithm
/// for Web Caches", NSDI 2024). It has one queue in order of arrival, a bit per key that a hit sets, and a hand. To
/// evict, the hand moves from the oldest key towards the newest, and clears bits. It evicts the first key whose bit is
/// not set, and stays there.
struct SieveSimulator: CacheSimulator {
    private let capacity: Int
    private var queue: KeyQueue
    private var isVisited: [Bool]
    /// The key with which the search for the next victim continues; -1 for the oldest key.
    private var hand = -1

    init(capacity: Int, universe: Int) {
        self.capacity = max(capacity, 1)
        queue = KeyQueue(universe: universe)
        isVisited = .init(repeating: false, count: universe)
    }

    var count: Int { queue.count }

    mutating func access(_ key: Int) -> Bool {
        if queue.contains(key) {
            isVisited[key] = true
            return true
        }
        if queue.count >= capacity { evict() }
        queue.push(key)
        isVisited[key] = false
        return false
    }

    private mutating func evict() {
        var candidate = hand >= 0 ? hand : queue.oldest
        while isVisited[candidate] {
            isVisited[candidate] = false
            let next = queue.newer(than: candidate)
            candidate = next >= 0 ? next : queue.oldest
        }
        hand = queue.newer(than: candidate)
        queue.remove(candidate)
    }
}
