/// Chooses the next key in a ``Load/KeyOrder``. The keys are the same in every run with the same seed.
struct KeyChooser {
    private enum Way {
        case uniform
        /// Each key differs from the previous one by this number, modulo the number of keys.
        case stepping(by: Int)
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
            case .sequential: .stepping(by: 1)
            case .scattered: .stepping(by: Self.scatteringStep(self.count))
            case .zipf(let exponent): .zipf(ZipfSampler(count: self.count, exponent: exponent))
            }
    }

    mutating func next() -> Int {
        switch way {
        case .uniform:
            // The upper half of a product avoids a division.
            return Int(generator.next().multipliedFullWidth(by: UInt64(count)).high)
        case .stepping(let step):
            defer { position = (position + step) % count }
            return position
        case .zipf(let sampler):
            return sampler.sample(&generator)
        }
    }

    /// A step that is coprime with `count`, so that every key is chosen once before any is repeated. It is about
    /// `count` times the golden ratio, so that consecutive keys are far apart.
    static func scatteringStep(_ count: Int) -> Int {
        var step = max(1, Int(Double(count) * 0.618_033_988_75))
        while gcd(step, count) != 1 { step += 1 }
        return step
    }

    private static func gcd(_ first: Int, _ second: Int) -> Int {
        var (first, second) = (first, second)
        while second != 0 { (first, second) = (second, first % second) }
        return first
    }
}
