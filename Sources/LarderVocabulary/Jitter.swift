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
        return max(1, milliseconds - Int64.random(in: 0...most))
    }
}
