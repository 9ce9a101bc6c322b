import LarderPlatform

/// A random number generator that returns the same numbers for the same seed on every platform. Uses SplitMix64, which
/// is small and fast.
package struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    package init(seed: UInt64) {
        state = seed
    }

    package mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}

extension SeededGenerator {
    /// Returns a random number that is at least 0 and less than `limit`.
    package mutating func below(_ limit: Int) -> Int { Int.random(in: 0..<limit, using: &self) }

    /// Returns `count` random bytes.
    package mutating func bytes(count: Int) -> [UInt8] {
        (0..<count).map { _ in UInt8(truncatingIfNeeded: next()) }
    }

    /// Returns true in one of `chances` cases on average.
    package mutating func oneIn(_ chances: Int) -> Bool {
        Int.random(in: 0..<max(chances, 1), using: &self) == 0
    }
}

/// Returns the seed for a random test: `LARDER_SEED` from the environment, or a random one. Prints it, so that a
/// failure can be reproduced.
package func testSeed(_ test: String = #function) -> UInt64 {
    let seed = TestSetting.seed.number(UInt64.self) ?? UInt64.random(in: .min ... .max)
    print("\(test): LARDER_SEED=\(seed)")
    return seed
}
