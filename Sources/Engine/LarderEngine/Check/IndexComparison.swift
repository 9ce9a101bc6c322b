/// Finds records that lack their key in the expiry index, in bounded memory. It reads all records first, and then all
/// index keys, in LevelDB's order.
///
/// It remembers a hash of every key; when these become too many, it continues with a part of the keys, and the reader
/// must read again for each other part. A value.
struct IndexComparison {
    /// The part of the keys that is compared: those whose hash has this remainder.
    struct Part: Equatable {
        var divisor: UInt64 = 1
        var remainder: UInt64 = 0

        func contains(_ hash: UInt64) -> Bool { hash % divisor == remainder }
    }

    private struct Wanted {
        let hash: UInt64
        /// The earliest acceptable bucket time.
        let time: Int64
        let isExpired: Bool
    }

    /// Records that lack their index key.
    struct Missing {
        /// The hashes of the records that are not expired.
        var hashes: [UInt64] = []
        /// The number of expired records.
        var expired = 0
    }

    private let keysMax: Int
    private(set) var part: Part
    private var wanted: [Wanted] = []
    private var isFound: [Bool] = []
    private var isSorted = false

    /// - Parameter keysMax: the number of keys to remember, at 17 bytes each; 32 MiB by default.
    init(_ part: Part = Part(), keysMax: Int = 1 << 21) {
        self.part = part
        self.keysMax = max(1, keysMax)
    }

    static func hash(_ kind: UInt8, _ key: UnsafeRawBufferPointer) -> UInt64 {
        var hasher = Hasher()
        hasher.combine(kind)
        hasher.combine(bytes: key)
        return UInt64(bitPattern: Int64(hasher.finalize()))
    }

    /// Adds a record that should have an index key of a kind, not earlier than a time.
    mutating func want(
        _ kind: UInt8, _ key: UnsafeRawBufferPointer, from time: Int64, isExpired: Bool = false
    ) {
        let hash = Self.hash(kind, key)
        guard part.contains(hash) else { return }
        wanted.append(Wanted(hash: hash, time: time, isExpired: isExpired))
        while wanted.count > keysMax, part.divisor < 1 << 32 {
            part.divisor *= 2
            wanted.removeAll { [part] in !part.contains($0.hash) }
        }
    }

    /// Adds an index key.
    mutating func meet(_ kind: UInt8, _ key: UnsafeRawBufferPointer, bucket: Int64) {
        sort()
        let hash = Self.hash(kind, key)
        guard part.contains(hash) else { return }
        var index = wanted.partitioningIndex { $0.hash >= hash }
        while index < wanted.count, wanted[index].hash == hash {
            if bucket >= wanted[index].time { isFound[index] = true }
            index += 1
        }
    }

    private mutating func sort() {
        guard !isSorted else { return }
        isSorted = true
        wanted.sort { $0.hash < $1.hash }
        isFound = Array(repeating: false, count: wanted.count)
    }

    /// The records that lack their index key. Call it after the last index key.
    mutating func missing() -> Missing {
        sort()
        var missing = Missing()
        for index in wanted.indices where !isFound[index] {
            if wanted[index].isExpired { missing.expired += 1 } else { missing.hashes.append(wanted[index].hash) }
        }
        return missing
    }
}

extension Array {
    /// The first index whose element satisfies a condition that all later ones satisfy too.
    func partitioningIndex(where fulfils: (Element) -> Bool) -> Int {
        var (low, high) = (0, count)
        while low < high {
            let middle = low + (high - low) / 2
            if fulfils(self[middle]) { high = middle } else { low = middle + 1 }
        }
        return low
    }
}
