import LarderPlatform

/// A generated sequence of requested keys. It is the same in every run with the same seed.
struct Trace {
    enum Kind: CaseIterable {
        case zipf08, zipf10, scans

        var title: String {
            switch self {
            case .zipf08: "Zipf 0.8"
            case .zipf10: "Zipf 1.0"
            case .scans: "Zipf 1.0, every fifth request part of a scan"
            }
        }
    }

    /// The number of keys that are requested repeatedly.
    static let keyCount = 200_000
    /// The number of keys of one scan, each of which is requested once.
    private static let scanLength = 10_000

    let keys: [Int32]
    /// Keys are 0..<universe.
    let universe: Int

    init(keys: [Int32], universe: Int) {
        self.keys = keys
        self.universe = universe
    }

    init(_ kind: Kind, count: Int, seed: UInt64) {
        var generator = SplitMix(seed: seed)
        let sampler = ZipfSampler(count: Self.keyCount, exponent: kind == .zipf08 ? 0.8 : 1)
        var keys: [Int32] = []
        keys.reserveCapacity(count)
        var scanned = Self.keyCount
        while keys.count < count {
            if kind == .scans, keys.count % (5 * Self.scanLength) == 4 * Self.scanLength {
                for _ in 0..<min(Self.scanLength, count - keys.count) {
                    keys.append(Int32(scanned))
                    scanned += 1
                }
            } else {
                keys.append(Int32(sampler.sample(&generator)))
            }
        }
        self.keys = keys
        universe = scanned
    }
}
