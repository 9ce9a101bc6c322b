/// Retry back-off for outbox deliveries.
package enum RetryBackoff {
    /// The shortest back-off, in milliseconds.
    package static let shortest: Int64 = 100
    package static let longest: Int64 = 30_000

    /// The back-off in milliseconds. It doubles with each failure up to the maximum, and is randomized so that retries
    /// do not happen all at once.
    package static func rest(after failures: Int) -> Int64 {
        let most = min(longest, shortest << Int64(min(failures, 16)))
        return Int64.random(in: (most / 2)...most)
    }
}
