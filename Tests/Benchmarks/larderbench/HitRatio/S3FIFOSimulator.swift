/// S3-FIFO, algorithm 1 (Yang, Zhang, Qiu, Yue and Vinayak, "FIFO Queues are All You Need for Cache Eviction", SOSP
/// 2023). It has a small queue of a tenth of the capacity, a main queue, a ghost queue of keys evicted from the small
/// queue, and a count of up to 3 hits per key. A key that leaves the small queue with more than one hit moves to the
/// main queue. A key that leaves the main queue with hits returns to it with one hit less.
struct S3FIFOSimulator: CacheSimulator {
    private let capacity: Int
    private let smallTarget: Int
    private var small: KeyQueue
    private var main: KeyQueue
    private var ghost: KeyQueue
    private var hits: [UInt8]

    init(capacity: Int, universe: Int) {
        self.capacity = max(capacity, 2)
        smallTarget = max(1, self.capacity / 10)
        small = KeyQueue(universe: universe)
        main = small
        ghost = small
        hits = .init(repeating: 0, count: universe)
    }

    var count: Int { small.count + main.count }

    mutating func access(_ key: Int) -> Bool {
        if small.contains(key) || main.contains(key) {
            hits[key] = min(hits[key] + 1, 3)
            return true
        }
        while count >= capacity {
            if small.count >= smallTarget { evictFromSmall() } else { evictFromMain() }
        }
        if ghost.contains(key) {
            ghost.remove(key)
            main.push(key)
        } else {
            small.push(key)
        }
        hits[key] = 0
        return false
    }

    private mutating func evictFromSmall() {
        while small.count > 0 {
            let key = small.popOldest()
            if hits[key] > 1 {
                main.push(key)
                hits[key] = 0
                if main.count > capacity - smallTarget { evictFromMain() }
            } else {
                if ghost.count >= capacity - smallTarget { _ = ghost.popOldest() }
                ghost.push(key)
                return
            }
        }
    }

    private mutating func evictFromMain() {
        while main.count > 0 {
            let key = main.popOldest()
            guard hits[key] > 0 else { return }
            hits[key] -= 1
            main.push(key)
        }
        // The main queue is empty, so all keys are in the small queue.
        if small.count > 0 { evictFromSmall() }
    }
}
