/// The connection's view of its database's origin. A value type, used by the session's owner.
struct OriginAccess {
    /// The origin of the selected database; nil if it has none.
    var tier: OriginTier?
    /// Why the database's origin cannot be used.
    var failure: CommandError?
    /// Whether the database is an outbox.
    var isOutbox = false
    /// The ``OriginTable/generation`` of these values.
    var generation = 0
    /// The progress of the current command.
    var call: OriginCall?
    /// The number of following requests that were prefetched.
    var aheadCount = 0
    /// Whether the current command may return a stale value, because it has waited long enough.
    var servesStale = false

    /// Whether the current command is a read that was forwarded to the origin unchanged.
    var isForwarded = false

    /// Whether commands must be checked for an origin or outbox before they run.
    var isLookedAt: Bool { isUsed || isOutbox || call != nil }

    var isUsed: Bool { tier != nil || failure != nil }

    /// Resets the state of the finished command.
    mutating func endCall() {
        call = nil
        servesStale = false
        isForwarded = false
        aheadCount -= 1
    }
}
