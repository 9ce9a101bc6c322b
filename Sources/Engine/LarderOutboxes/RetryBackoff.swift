/// The retry back-off for outbox deliveries: the time between a failed attempt and the next one.
package enum RetryBackoff {
    /// The shortest back-off, in milliseconds, before randomization.
    package static let shortest: Int64 = 100
    /// The longest back-off, in milliseconds.
    package static let longest: Int64 = 30_000

    /// Returns the back-off in milliseconds. It doubles with each failure, up to ``longest``. A random part of at most
    /// half of it is then subtracted, so that retries do not happen all at once.
    package static func rest(after failures: Int) -> Int64 {
        let most = min(longest, shortest << Int64(min(failures, 16)))
        return Int64.random(in: (most / 2)...most)
    }
}
