import LarderVocabulary

extension Session {
    /// Updates the session's origin if any origin has changed. Costs one atomic load if none has.
    @inline(__always)
    func renewOrigin() {
        if server.origins.generation.load(ordering: .acquiring) != origin.generation { findOrigin() }
    }

    /// Ends the current command's requests to the origin, because it is complete or its replies are outdated.
    func endOriginCall() {
        let hadCall = origin.call != nil
        origin.endCall()
        // If the database has no origin, the next commands can use the fast path again.
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
