/// Limits how often a log line is written, and counts the suppressed lines. Not synchronized.
package struct LineRate: Sendable {
    private let milliseconds: Int64
    private let burst: Int64
    private var allowed: Int64
    private var refilledAt: Int64 = .min / 2
    private var skipped = 0

    /// - Parameters:
    ///   - milliseconds: the interval after which one more line is allowed, up to a whole burst.
    ///   - burst: the maximum number of lines without a pause.
    package init(milliseconds: Int64, burst: Int64 = 1) {
        self.milliseconds = milliseconds
        self.burst = burst
        allowed = burst
    }

    /// - Parameter monotonic: the current time of the monotonic clock, in milliseconds.
    /// - Returns: nil to suppress the line; otherwise the number of lines suppressed since the last allowed line.
    package mutating func line(at monotonic: Int64) -> Int? {
        let refill = max(0, monotonic - refilledAt) / milliseconds
        allowed = min(burst, allowed + min(refill, burst))
        // Once the full burst is allowed, waiting longer does not allow more lines.
        refilledAt = allowed == burst ? monotonic : refilledAt + refill * milliseconds
        guard allowed > 0 else {
            skipped += 1
            return nil
        }
        allowed -= 1
        defer { skipped = 0 }
        return skipped
    }

    /// Returns a suffix for the log line, with the number of suppressed lines; empty if there are none.
    package static func rest(_ skipped: Int, _ what: String) -> String {
        skipped > 0 ? "; \(skipped) more \(what) since the last line" : ""
    }
}
