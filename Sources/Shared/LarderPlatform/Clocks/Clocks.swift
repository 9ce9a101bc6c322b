/// The system's monotonic clock. Counts from an unspecified instant that stays the same while the machine runs.
package enum MonotonicClock {
    @inlinable package static func nanoseconds() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }

    @inlinable package static func milliseconds() -> Int64 { nanoseconds() / 1_000_000 }
}

/// The CPU time of the calling thread. Reading it is a system call, and far slower than reading ``MonotonicClock``.
package enum ThreadClock {
    package static func nanoseconds() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }
}

/// Exponential back-off with jitter: the time between a failed attempt and the next one.
package enum RetryBackoff {
    /// The shortest back-off of deliveries and of requests to origins, in milliseconds, before randomization.
    package static let shortest: Int64 = 100
    /// The longest back-off of deliveries and of requests to origins, in milliseconds.
    package static let longest: Int64 = 30_000

    /// Returns the back-off, in the unit of `shortest`. It doubles with each failure, up to `longest`. A random part of
    /// it is then subtracted, so that retries do not happen all at once.
    /// - Parameters:
    ///   - failures: the number of failures before the last one.
    ///   - jitter: the upper limit of the random part.
    ///   - random: a random number from 0 to below 1.
    package static func rest(
        after failures: Int, from shortest: Int64 = shortest, to longest: Int64 = longest,
        jitter: Double = 0.5, random: Double = .random(in: 0..<1)
    ) -> Int64 {
        let most = min(longest, shortest << Int64(min(failures, 20)))
        return most - Int64(Double(most) * jitter * random)
    }
}

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
        (self.milliseconds, self.burst, allowed) = (milliseconds, burst, burst)
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
        return exchange(&skipped, with: 0)
    }

    /// Returns a suffix for the log line, with the number of suppressed lines; empty if there are none.
    package static func rest(_ skipped: Int, _ what: String) -> String {
        skipped > 0 ? "; \(skipped) more \(what) since the last line" : ""
    }
}
