/// How a session reaches the origin of its database. A value; the session's owner uses it.
struct OriginAccess {
    /// The origin of the selected database; nil if it has none.
    var tier: OriginTier?
    /// Why the origin that the database should have cannot be asked.
    var failure: CommandError?
    /// Whether the database has what waits for another one's origin.
    var isOutbox = false
    /// Which of ``OriginTable/generation`` they are from.
    var generation = 0
    /// What the current command has got so far.
    var call: OriginCall?
    /// How many of the next requests were asked for ahead.
    var aheadCount = 0
    /// Whether the current command may have what is stale, because it has waited long enough.
    var servesStale = false

    /// Whether the current command reads, and was sent as it is.
    var isForwarded = false

    /// Whether commands are looked at before they run.
    var isLookedAt: Bool { isUsed || isOutbox || call != nil }

    var isUsed: Bool { tier != nil || failure != nil }

    /// The current command has ended.
    mutating func endCall() {
        call = nil
        servesStale = false
        isForwarded = false
        aheadCount -= 1
    }
}
