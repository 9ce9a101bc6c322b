/// How long who brings what waits leaves alone what has failed.
package enum RetryBackoff {
    /// In milliseconds.
    package static let shortest: Int64 = 100
    package static let longest: Int64 = 30_000

    /// Longer each time, and never the same for many. In milliseconds.
    package static func rest(after failures: Int) -> Int64 {
        let most = min(longest, shortest << Int64(min(failures, 16)))
        return Int64.random(in: (most / 2)...most)
    }
}
