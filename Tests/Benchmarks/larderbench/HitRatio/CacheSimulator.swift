/// A cache of keys alone, limited by their number: it shows a policy's hit ratio without real costs.
protocol CacheSimulator {
    /// Requests a key, and stores it if it was absent.
    /// - Returns: whether it was there.
    mutating func access(_ key: Int) -> Bool
    /// Keys held.
    var count: Int { get }
}

extension CacheSimulator {
    /// The share of a trace that finds its key, counted from `start` on.
    mutating func hitRatio(_ trace: [Int32], from start: Int) -> Double {
        var hits = 0
        for (position, key) in trace.enumerated() where access(Int(key)) && position >= start { hits += 1 }
        return Double(hits) / Double(max(trace.count - start, 1))
    }
}

/// A queue of keys 0..<universe, each in it at most once. Any key can be removed at once.
struct KeyQueue {
    private var newer: [Int32]
    private var older: [Int32]
    private var isIn: [Bool]
    /// The newest key and the oldest; -1 when there is none.
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
