import LarderVocabulary

extension Session {
    /// Updates the session's origin if any origin has changed. Costs one atomic load if none has.
    @inline(__always)
    func renewOrigin() {
        if server.origins.generation.load(ordering: .acquiring) != origin.generation { findOrigin() }
    }

    /// The current command is complete, or its origin replies are outdated.
    func endOriginCall() {
        let hadCall = origin.call != nil
        origin.endCall()
        // Without an origin, the next commands can use the fast path again.
        if hadCall, !origin.isLookedAt { noteMode() }
    }

    /// Looks up the origin of the selected database.
    func findOrigin() {
        origin.generation = server.origins.generation.load(ordering: .acquiring)
        let wasUsed = origin.isLookedAt
        origin.isOutbox = CompanionName.isOne(database.name)
        (origin.tier, origin.failure) = (nil, nil)
        do throws(CommandError) { origin.tier = try server.origins.tier(of: database.name) } catch {
            origin.failure = error
        }
        if origin.isLookedAt || wasUsed { noteMode() }
    }
}
