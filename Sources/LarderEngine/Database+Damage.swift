/// Setting a damaged database aside.
extension Database {
    /// Sets the database aside if opening it shows damage, or if damage was met since it was opened.
    func setAsideIfDamaged() throws(LarderError) {
        try ForkGuard.check("set aside")
        try openLock.withLock { () throws(LarderError) in
            var damage: LarderError?
            switch appliedState.presence {
            case .open(let store): damage = store.knownDamage
            case .closed, .failed:
                do throws(LarderError) {
                    try openCurrentEpoch()
                } catch {
                    guard error.code == .damaged else { throw error }
                    damage = error
                }
            case .absent: break
            case .deleted: throw deletedError("set aside")
            case .shut(let error): throw error
            }
            guard let damage else {
                throw LarderError(
                    .invalidArgument, "no damage was found in the database", operation: "set aside", database: name)
            }
            try setAsideAndStartEmpty(damage)
        }
    }

    /// Sets the database aside because of damage that was met in `store`, unless it has another one by now.
    func setAside(_ store: EpochStore, _ damage: LarderError) throws(LarderError) {
        try openLock.withLock { () throws(LarderError) in
            guard appliedState.store === store else { return }
            try setAsideAndStartEmpty(damage)
        }
    }

    /// Moves the damaged files to `DAMAGED/` and goes on with an empty database under the same policy. Called with
    /// `openLock` held.
    func setAsideAndStartEmpty(_ damage: LarderError) throws(LarderError) {
        let policy = policyOnDisk
        let place = try DamagedFiles.place(of: name, context: context)
        let (store, ticket) = withAllShards { () -> (EpochStore?, CommitTicket) in
            let store = applied.store
            clearEntries()
            applied.endFiles(leaving: .absent)
            applied.rules = FreshnessRules(policy: policy)
            let ticket = enqueueControl(
                perform: { [self] () throws(LarderError) in
                    try DamagedFiles.move(directory, to: place, name: name, context: context)
                }, committed: { store?.end(.setAside) })
            return (store, ticket)
        }
        try pipeline.wait(for: ticket)
        store?.close()
        DamagedFiles.enforceCap(context)
        context.statistics.setAside.add()
        context.report(.error, "database '\(name)' was damaged and set aside at \(place); an empty one takes its place")
        try create(policy)
    }

    /// The policy as POINTER says, if it can be read, else the one that was last in force.
    var policyOnDisk: UpdatePolicy { (try? readPointer())?.rules.policy ?? appliedState.rules.policy }
}
