import LarderVocabulary

/// The origin of a session's database, and the current command's use of it. A value type, used only by the session's
/// owner.
struct OriginAccess {
    /// The origin of the selected database; nil if it has none.
    private(set) var tier: OriginTier?
    /// Why the database's origin cannot be used; nil if it can be used, or if there is no origin.
    private(set) var failure: CommandError?
    /// Whether the database is an outbox, which contains queued writes for an origin.
    private(set) var isOutbox = false
    /// The value of ``OriginTable/generation`` when the other properties were set. If the generation has changed, these
    /// properties are outdated.
    private(set) var generation = 0
    /// The current command's requests to the origin; nil if it has sent none.
    var call: OriginCall?
    /// The number of following commands whose keys were already requested from the origin.
    var aheadCount = 0
    /// Whether the current command may return a stale value, because it has waited for the origin long enough.
    var servesStale = false
    /// Whether the current command is a read that the origin executes unchanged.
    var isForwarded = false

    /// Whether commands must be checked for an origin or outbox before they run.
    var needsCheck: Bool { isUsed || isOutbox || call != nil }

    var isUsed: Bool { tier != nil || failure != nil }

    /// Looks up the origin of a database.
    mutating func find(_ database: String, in origins: OriginTable) {
        generation = origins.generation.load(ordering: .acquiring)
        isOutbox = CompanionName.isOne(database)
        (tier, failure) = (nil, nil)
        do throws(CommandError) { tier = try origins.tier(of: database) } catch { failure = error }
    }

    /// Resets the state that belongs to the finished command.
    mutating func endCall() {
        call = nil
        servesStale = false
        isForwarded = false
        aheadCount -= 1
    }
}
