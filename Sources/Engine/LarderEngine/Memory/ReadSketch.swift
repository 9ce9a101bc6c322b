import LarderPlatform

/// The approximate number of recent disk reads of each key: a count-min sketch with four-bit counters that are halved
/// regularly (Einziger, Friedman and Manes, "TinyLFU: A Highly Efficient Cache Admission Policy", ACM Transactions on
/// Storage, 2017).
///
/// The count of a key may be too high, because the key shares counters with others. Up to ``countMax``, the count is
/// never lower than the number of reads since the counters were last halved. The counters are halved after a number of
/// reads, so that earlier reads count less and less.
///
/// A value; the lock of its shard guards it. No memory is allocated before the first read.
struct ReadSketch {
    /// Each word has sixteen counters.
    private var words: ContiguousArray<UInt64> = []
    private var additions = 0

    /// The maximum size of one sketch in words: 128 KiB, 256 Ki counters. A database's sketches take at most 2 MiB.
    static let wordsMax = 16_384
    /// The number of reads per word after which the counters are halved. Measured: with a higher number, too many keys
    /// share each counter, and the counts are meaningless.
    private static let additionsPerWord = 4
    private static let wordsMin = 1024
    static let countMax = 15
    private static let depth = 4

    var isEmpty: Bool { words.isEmpty }
    /// The number of words, at most ``wordsMax``.
    var wordCount: Int { words.count }

    /// Counts a read of the key with this hash.
    mutating func add(_ hash: Int) {
        if words.isEmpty { words = ContiguousArray(repeating: 0, count: Self.wordsMin) }
        var hasRaised = false
        var spread = Self.spread(hash)
        let least = count(hash)
        for _ in 0..<Self.depth {
            let (word, shift) = place(spread)
            // Increment only the smallest of the key's counters. That overestimates less.
            if words[word] >> shift & 15 == UInt64(least), least < Self.countMax {
                words[word] += 1 << shift
                hasRaised = true
            }
            spread = SplitMix.first(of: spread)
        }
        guard hasRaised else { return }
        additions += 1
        if additions >= words.count * Self.additionsPerWord { age() }

    }

    /// Returns the estimated number of reads of the key with this hash, from 0 to ``countMax``.
    func count(_ hash: Int) -> Int {
        guard !words.isEmpty else { return 0 }
        var least = UInt64(Self.countMax)
        var spread = Self.spread(hash)
        for _ in 0..<Self.depth {
            let (word, shift) = place(spread)
            least = min(least, words[word] >> shift & 15)
            spread = SplitMix.first(of: spread)
        }
        return Int(least)
    }

    /// Halves all counters. Also doubles a sketch that has not reached its maximum size, by appending a copy of it. The
    /// counts stay valid: each counter index gets one more bit, and both values of this bit select the old count.
    private mutating func age() {
        for index in words.indices { words[index] = words[index] >> 1 & 0x7777_7777_7777_7777 }
        additions /= 2
        if words.count < Self.wordsMax { words.append(contentsOf: words) }
    }

    private func place(_ spread: UInt64) -> (word: Int, shift: UInt64) {
        (Int(truncatingIfNeeded: spread >> 8) & (words.count - 1), (spread & 15) * 4)
    }

    /// Mixes the bits, because the lowest bits of a hash are the same for all keys of a shard.
    private static func spread(_ hash: Int) -> UInt64 {
        SplitMix.first(of: UInt64(bitPattern: Int64(hash)) &* SplitMix.step)
    }
}
