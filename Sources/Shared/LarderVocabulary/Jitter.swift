import LarderPlatform
import Synchronization

/// Shortens lifetimes at random, so that entries stored together do not expire together.
package enum Jitter {
    package static let percentMax = 100

    /// Returns `milliseconds` shortened at random by at most `percent` percent, but at least 1.
    /// - Parameter milliseconds: at most ``EntryPolicy/latestMilliseconds``.
    package static func shortened(_ milliseconds: Int64, by percent: Int) -> Int64 {
        guard percent > 0, milliseconds > 1 else { return milliseconds }
        let most =
            milliseconds / 100 * Int64(min(percent, percentMax))
            + milliseconds % 100 * Int64(min(percent, percentMax)) / 100
        if let source { return max(1, milliseconds - source.next(upTo: most)) }
        return max(1, milliseconds - Int64.random(in: 0...most))
    }

    /// The source of random numbers within ``repeatably(_:_:)``; nil for the system's.
    @TaskLocal private static var source: Source?

    /// Runs `body` with random numbers that depend only on the seed, so that the results are repeatable.
    package static func repeatably<Result>(_ seed: UInt64, _ body: () -> Result) -> Result {
        $source.withValue(Source(seed: seed), operation: body)
    }

    /// ``SplitMix`` for several threads.
    private final class Source: RandomNumberGenerator, Sendable {
        private let state: Atomic<UInt64>

        init(seed: UInt64) { state = Atomic(seed) }

        func next() -> UInt64 { SplitMix.number(of: state.wrappingAdd(SplitMix.step, ordering: .relaxed).newValue) }

        func next(upTo most: Int64) -> Int64 {
            var generator = self
            return Int64.random(in: 0...most, using: &generator)
        }
    }
}
