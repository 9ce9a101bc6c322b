/// A script that many applications use, for locks and limits. A call has a key and at most one value.
enum BenchScript: String, CaseIterable {
    /// Releases a lock: removes the key if it has the given value.
    case compareAndDelete = "compare-and-delete"
    /// Extends a lock.
    case compareAndExpire = "compare-and-expire"
    /// Counts calls for a rate limit, in a window that starts with the first call.
    case countAndExpire = "INCRBY and EXPIRE"

    var text: String {
        switch self {
        case .compareAndDelete:
            "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end"
        case .compareAndExpire:
            "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('pexpire',KEYS[1],30000) else return 0 end"
        case .countAndExpire:
            "local count = redis.call('incrby',KEYS[1],1) if count == 1 then redis.call('expire',KEYS[1],60) end return 1"
        }
    }

    /// The SHA-1 of ``text``, by which it is called.
    var digest: String {
        switch self {
        case .compareAndDelete: "ae3671744a5dbb24ea37ef607b8b10ac7856d43e"
        case .compareAndExpire: "4a73b414dea25b738aea4a3f13163f7230ab7352"
        case .countAndExpire: "7738f85a3382bf98597461989f7bd345b73247e7"
        }
    }

    /// Whether a call passes a value to compare with.
    var hasValue: Bool { self != .countAndExpire }

    /// The percentage of SETs among the calls: a value must be stored before it can be deleted.
    var setPercent: Int { self == .compareAndDelete ? 50 : 0 }

    /// The number of keys. Counters stay in memory while their windows last; each counter's first call reads the disk.
    var keyCount: Int { self == .countAndExpire ? 1_000 : 100_000 }

    /// The number of the first key: counters must not use keys with other values.
    var firstKey: Int { self == .countAndExpire ? 1_000_000_000 : 0 }
}
