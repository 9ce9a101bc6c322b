import LarderPlatform

/// How late the space of expired entries was freed: from the instant at which an entry was gone to its removal from
/// memory and files. Not of entries that were gone for another reason, such as a purge of their tag.
///
/// Thread-safe. `@unchecked Sendable`: the counts are guarded by `lock`.
package final class ExpiryLag: @unchecked Sendable {
    package struct Sums: Equatable, Sendable {
        package var entries = 0
        package var milliseconds: Int64 = 0
        package var mostMilliseconds: Int64 = 0
        /// How many were so late that their milliseconds have so many binary digits.
        fileprivate var byDigits = [Int](repeating: 0, count: 65)

        package var averageMilliseconds: Int64 { entries > 0 ? milliseconds / Int64(entries) : 0 }

        /// A bound below which this share of the entries was, at most twice the exact value.
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

    /// Notes a removal.
    /// - Parameter end: when the entry was gone; nil if that does not count.
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
