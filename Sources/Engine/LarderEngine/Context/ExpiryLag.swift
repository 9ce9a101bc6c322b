import LarderPlatform

/// The delay in freeing the space of expired entries: from their expiry to their removal from memory and files. Entries
/// that were removed for another reason, such as a purge of their tag, are not counted.
///
/// Thread-safe. `@unchecked Sendable`: the counts are guarded by `lock`.
package final class ExpiryLag: @unchecked Sendable {
    package struct Sums: Equatable, Sendable {
        package var entries = 0
        package var milliseconds: Int64 = 0
        package var mostMilliseconds: Int64 = 0
        /// A histogram: the element at index n is the number of delays whose milliseconds have n binary digits.
        fileprivate var byDigits = [Int](repeating: 0, count: 65)

        package var averageMilliseconds: Int64 { entries > 0 ? milliseconds / Int64(entries) : 0 }

        /// Returns a percentile of the delays, in milliseconds; a share of 0.99 means the 99th percentile. The result
        /// is an upper bound, at most twice the exact value.
        package func milliseconds(ofShare share: Double) -> Int64 {
            var left = Int((Double(entries) * share).rounded(.up))
            for (digits, count) in byDigits.enumerated() where count > 0 {
                left -= count
                if left <= 0 { return min(mostMilliseconds, digits >= 63 ? .max : Int64(1) << digits - 1) }
            }
            return mostMilliseconds
        }
    }

    private let lock = Lock()
    private var all = Sums()

    package var sums: Sums { lock.withLock { all } }

    /// Counts the removal of an entry, with the delay since its expiry.
    /// - Parameter end: when the entry expired; nil to count nothing.
    func note(end: Int64?, now: Int64) {
        guard let end else { return }
        let (span, isTooLong) = now.subtractingReportingOverflow(end)
        let lag = isTooLong ? .max : max(0, span)
        lock.withLock {
            all.entries += 1
            all.milliseconds = all.milliseconds.addingClamped(lag)
            all.mostMilliseconds = max(all.mostMilliseconds, lag)
            all.byDigits[64 - lag.leadingZeroBitCount] += 1
        }
    }
}
