/// Lets a line of a log through in a while, and counts the others. A value; whoever shares it guards it.
package struct LineRate: Sendable {
    private let milliseconds: Int64
    private let burst: Int64
    private var allowed: Int64
    private var refilledAt: Int64 = .min / 2
    private var skipped = 0

    /// - Parameters:
    ///   - milliseconds: one line in so many, when the burst is used up.
    ///   - burst: the most lines that follow each other without a pause.
    package init(milliseconds: Int64, burst: Int64 = 1) {
        self.milliseconds = milliseconds
        self.burst = burst
        allowed = burst
    }

    /// - Parameter monotonic: now, in milliseconds of the monotonic clock.
    /// - Returns: how many lines were left out since the last one; nil if this one is to be left out.
    package mutating func line(at monotonic: Int64) -> Int? {
        let refill = max(0, monotonic - refilledAt) / milliseconds
        allowed = min(burst, allowed + min(refill, burst))
        // A pause that was too long for the burst counts for nothing later.
        refilledAt = allowed == burst ? monotonic : refilledAt + refill * milliseconds
        guard allowed > 0 else {
            skipped += 1
            return nil
        }
        allowed -= 1
        defer { skipped = 0 }
        return skipped
    }

    /// What a line says of those that were left out.
    package static func rest(_ skipped: Int, _ what: String) -> String {
        skipped > 0 ? "; \(skipped) more \(what) since the last line" : ""
    }
}
