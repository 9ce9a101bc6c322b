/// Limits the rate of a log line, and counts the suppressed ones. A value; if it is shared, its owner guards it.
package struct LineRate: Sendable {
    private let milliseconds: Int64
    private let burst: Int64
    private var allowed: Int64
    private var refilledAt: Int64 = .min / 2
    private var skipped = 0

    /// - Parameters:
    ///   - milliseconds: the interval between lines when the burst is used up.
    ///   - burst: the maximum number of lines without a pause.
    package init(milliseconds: Int64, burst: Int64 = 1) {
        self.milliseconds = milliseconds
        self.burst = burst
        allowed = burst
    }

    /// - Parameter monotonic: now, in milliseconds of the monotonic clock.
    /// - Returns: the number of lines suppressed since the last one; nil to suppress this one.
    package mutating func line(at monotonic: Int64) -> Int? {
        let refill = max(0, monotonic - refilledAt) / milliseconds
        allowed = min(burst, allowed + min(refill, burst))
        // Time beyond a full burst is not saved.
        refilledAt = allowed == burst ? monotonic : refilledAt + refill * milliseconds
        guard allowed > 0 else {
            skipped += 1
            return nil
        }
        allowed -= 1
        defer { skipped = 0 }
        return skipped
    }

    /// The suffix that reports the number of suppressed lines.
    package static func rest(_ skipped: Int, _ what: String) -> String {
        skipped > 0 ? "; \(skipped) more \(what) since the last line" : ""
    }
}
