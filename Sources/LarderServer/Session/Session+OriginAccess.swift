extension Session {
    /// Takes note of the origins that databases have now. Costs an atomic load if none has changed.
    @inline(__always)
    func renewOrigin() {
        if server.origins.generation.load(ordering: .acquiring) != origin.generation { findOrigin() }
    }

    /// Looks up the origin of the selected database.
    func findOrigin() {
        origin.generation = server.origins.generation.load(ordering: .acquiring)
        let wasUsed = origin.isUsed
        (origin.tier, origin.failure) = (nil, nil)
        do throws(CommandError) { origin.tier = try server.origins.tier(of: database.name) } catch {
            origin.failure = error
        }
        if origin.isUsed || wasUsed { noteMode() }
    }
}
