import LarderPlatform

/// Chooses the next key in a ``Load/KeyOrder``. The keys are the same in every run with the same seed.
struct KeyChooser {
    private enum Way {
        case uniform, sequential, scattered
        case zipf(ZipfSampler)
    }

    private let count: Int
    private let way: Way
    private var generator: SplitMix
    private var position = 0

    /// - Parameter count: keys are 0..<count; at least 1.
    init(_ order: Load.KeyOrder, count: Int, seed: UInt64) {
        self.count = max(count, 1)
        generator = SplitMix(seed: seed)
        way =
            switch order {
            case .uniform: .uniform
            case .sequential: .sequential
            case .scattered: .scattered
            case .zipf(let exponent): .zipf(ZipfSampler(count: self.count, exponent: exponent))
            }
    }

    mutating func next() -> Int {
        switch way {
        case .uniform:
            // The upper half of a product avoids a division.
            return Int(generator.next().multipliedFullWidth(by: UInt64(count)).high)
        case .sequential:
            return nextPosition()
        case .scattered:
            return scattered(nextPosition())
        case .zipf(let sampler):
            return sampler.sample(&generator)
        }
    }

    private mutating func nextPosition() -> Int {
        defer { position = position + 1 == count ? 0 : position + 1 }
        return position
    }

    /// Maps the positions 0..<count one-to-one to keys, in an order like a random one. Each step of a round maps the
    /// numbers of a power of two, which is less than twice `count`, one-to-one. Numbers that are too large are mapped
    /// again.
    private func scattered(_ position: Int) -> Int {
        let bits = Int.bitWidth - (count - 1).leadingZeroBitCount
        let mask = (1 << bits) - 1
        var key = position
        repeat {
            for _ in 0..<3 {
                key = (key &* 0x1E37_79B9_7F4A_7C15 &+ 0x632B_E59B) & mask
                key ^= key >> ((bits + 1) / 2)
            }
        } while key >= count
        return key
    }
}
