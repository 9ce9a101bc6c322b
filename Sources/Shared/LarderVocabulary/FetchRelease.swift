/// How the right to fetch a key (the lease) is released without storing a value.
package enum FetchRelease: Hashable, Sendable {
    /// Nothing is known about the origin; another caller may fetch immediately.
    case open
    /// The origin has no value. The key is remembered as absent for `milliseconds`.
    case absent(milliseconds: Int64)
    /// The origin failed. For `milliseconds`, callers do not fetch the key, and get a stale value if there is one.
    case failed(milliseconds: Int64)
}
