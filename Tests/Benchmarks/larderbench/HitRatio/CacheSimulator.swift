/// A cache of keys without values, with a limited number of keys. It measures the hit ratio of an eviction policy.
protocol CacheSimulator {
    /// Requests a key, and stores it if it was absent.
    /// - Returns: whether the key was stored before.
    mutating func access(_ key: Int) -> Bool
    /// The number of stored keys.
    var count: Int { get }
}

extension CacheSimulator {
    /// The share of requests that find their key, counted from position `start` of the trace.
    mutating func hitRatio(_ trace: [Int32], from start: Int) -> Double {
        var hits = 0
        for (position, key) in trace.enumerated() where access(Int(key)) && position >= start { hits += 1 }
        return Double(hits) / Double(max(trace.count - start, 1))
    }
}

/// A queue of keys 0..<universe, each at most once. Any key can be removed in constant time.
struct KeyQueue {
    private var newer: [Int32]
    private var older: [Int32]
    private var isIn: [Bool]
    /// The newest key; -1 if the queue is empty.
    private(set) var newest = -1
    private(set) var oldest = -1
    private(set) var count = 0

    init(universe: Int) {
        newer = .init(repeating: -1, count: universe)
        older = newer
        isIn = .init(repeating: false, count: universe)
    }

    func contains(_ key: Int) -> Bool { isIn[key] }

    /// The key that was pushed after `key`, or -1.
    func newer(than key: Int) -> Int { Int(newer[key]) }

    mutating func push(_ key: Int) {
        newer[key] = -1
        older[key] = Int32(newest)
        if newest >= 0 { newer[newest] = Int32(key) } else { oldest = key }
        newest = key
        isIn[key] = true
        count += 1
    }

    mutating func remove(_ key: Int) {
        let (after, before) = (Int(newer[key]), Int(older[key]))
        if after >= 0 { older[after] = Int32(before) } else { newest = before }
        if before >= 0 { newer[before] = Int32(after) } else { oldest = after }
        isIn[key] = false
        count -= 1
    }

    mutating func popOldest() -> Int {
        let key = oldest
        remove(key)
        return key
    }
}
