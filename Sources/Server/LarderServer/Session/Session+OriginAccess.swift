import LarderVocabulary

extension Session {
    /// Looks up the database's origin again if any origin has changed. Costs one atomic load if none has changed.
    @inline(__always)
    func renewOrigin() {
        if server.origins.generation.load(ordering: .acquiring) != origin.generation { findOrigin() }
    }

    /// Ends the current command's requests to the origin, because the command is complete, or their replies are
    /// outdated.
    func endOriginCall() {
        let hadCall = origin.call != nil
        origin.endCall()
        // If the database has no origin any more, the next commands can use the fast path again.
        if hadCall, !origin.needsCheck { noteMode() }
    }

    /// Looks up the origin of the selected database.
    func findOrigin() {
        origin.generation = server.origins.generation.load(ordering: .acquiring)
        let wasUsed = origin.needsCheck
        origin.isOutbox = CompanionName.isOne(database.name)
        (origin.tier, origin.failure) = (nil, nil)
        do throws(CommandError) { origin.tier = try server.origins.tier(of: database.name) } catch {
            origin.failure = error
        }
        if origin.needsCheck || wasUsed { noteMode() }
    }
}
