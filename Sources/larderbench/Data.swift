/// Keys as redis-benchmark writes them with `-r`: 16 bytes.
enum Keys {
    static func text(_ index: Int) -> String {
        let digits = String(index)
        return "key:" + String(repeating: "0", count: max(0, 12 - digits.count)) + digits
    }

    static func bytes(_ index: Int) -> [UInt8] { Array(text(index).utf8) }
}

/// Values of one size that snappy makes about half as large, as real ones often are. The same in every run.
struct Values {
    private let pool: [[UInt8]]

    init(bytes: Int) {
        var generator = SplitMix(seed: 42)
        pool = (0..<512).map { _ in
            let random = (0..<(bytes + 1) / 2).map { _ in UInt8(truncatingIfNeeded: generator.next()) }
            return Array((random + random).prefix(bytes))
        }
    }

    subscript(index: Int) -> [UInt8] { pool[index & 511] }
}

/// A small generator whose numbers are the same in every run. SplitMix64: Steele, Lea, Flood, "Fast splittable
/// pseudorandom number generators", 2014.
struct SplitMix: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
