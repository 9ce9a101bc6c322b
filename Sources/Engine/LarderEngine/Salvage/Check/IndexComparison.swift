/// Finds records that lack their key in the expiry index, in bounded memory. The caller must first add all records, and
/// then all index keys, because LevelDB stores them in this order.
///
/// It keeps the hashes of the keys. If there are too many keys, it continues with only one ``part`` of the keys. The
/// caller must then repeat the comparison for each other part.
struct IndexComparison {
    /// The part of the keys that is compared: those whose hash, divided by `divisor`, has this `remainder`.
    struct Part: Equatable {
        var divisor: UInt64 = 1
        var remainder: UInt64 = 0

        func contains(_ hash: UInt64) -> Bool { hash % divisor == remainder }
    }

    private struct Wanted {
        let hash: UInt64
        /// The lowest valid bucket time of the record's index key (see ``ExpiryIndex``), in milliseconds since 1970.
        let time: Int64
        let isExpired: Bool
    }

    /// Records that lack their index key.
    struct Missing {
        /// The hashes of the records that have not expired.
        var hashes: [UInt64] = []
        var expired = 0
    }

    private let keysMax: Int
    private(set) var part: Part
    private var wanted: [Wanted] = []
    private var isFound: [Bool] = []
    private var isSorted = false

    /// - Parameter keysMax: the maximum number of keys to keep, at about 25 bytes each; about 50 MiB by default.
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

    /// Adds a record that must have an index key of the given kind, with a bucket time of at least `time`.
    mutating func want(_ kind: UInt8, _ key: UnsafeRawBufferPointer, from time: Int64, isExpired: Bool = false) {
        let hash = Self.hash(kind, key)
        guard part.contains(hash) else { return }
        wanted.append(Wanted(hash: hash, time: time, isExpired: isExpired))
        while wanted.count > keysMax, part.divisor < 1 << 32 {
            part.divisor *= 2
            wanted.removeAll { [part] in !part.contains($0.hash) }
        }
    }

    /// Adds an index key that LevelDB contains.
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

    /// Returns the records that lack their index key. Call it after adding the last index key.
    mutating func missing() -> Missing {
        sort()
        var missing = Missing()
        for index in wanted.indices where !isFound[index] {
            if wanted[index].isExpired { missing.expired += 1 } else { missing.hashes.append(wanted[index].hash) }
        }
        return missing
    }
}
