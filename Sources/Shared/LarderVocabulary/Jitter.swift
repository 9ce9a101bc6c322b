/// Lives that are shortened at random.
package enum Jitter {
    package static let percentMax = 100

    /// A random part of an interval: at least 1 ms, and at least what `percent` leave of it.
    /// - Parameter milliseconds: at most ``EntryPolicy/latestMilliseconds``.
    package static func shortened(_ milliseconds: Int64, by percent: Int) -> Int64 {
        guard percent > 0, milliseconds > 1 else { return milliseconds }
        let most =
            milliseconds / 100 * Int64(min(percent, percentMax))
            + milliseconds % 100 * Int64(min(percent, percentMax)) / 100
        if let source { return max(1, milliseconds - source.next(upTo: most)) }
        return max(1, milliseconds - Int64.random(in: 0...most))
    }

    /// What is drawn instead of anything, so that it can be drawn again.
    @TaskLocal private static var source: Source?

    /// Runs `body` with jitters that depend on a number and on their order only.
    package static func repeatably<Result>(_ seed: UInt64, _ body: () -> Result) -> Result {
        $source.withValue(Source(seed: seed), operation: body)
    }

    /// Numbers that follow from a seed: SplitMix64 (Steele, Lea, Flood, 2014).
    ///
    /// Used by one thread at a time: ``repeatably(_:_:)`` gives it to the caller's only.
    private final class Source: RandomNumberGenerator, @unchecked Sendable {
        private var state: UInt64

        init(seed: UInt64) { state = seed }

        func next() -> UInt64 {
            state &+= 0x9E37_79B9_7F4A_7C15
            var mixed = (state ^ (state >> 30)) &* 0xBF58_476D_1CE4_E5B9
            mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
            return mixed ^ (mixed >> 31)
        }

        func next(upTo most: Int64) -> Int64 {
            var generator = self
            return Int64.random(in: 0...most, using: &generator)
        }
    }
}
