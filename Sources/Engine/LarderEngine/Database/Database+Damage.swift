/// Salvaging a damaged database or setting it aside.
extension Database {
    /// Reads the whole database. If it is damaged, moves its files to `DAMAGED/` and continues with an empty database;
    /// otherwise throws `invalidArgument`. Takes as long as reading all files.
    func setAsideIfDamaged() throws(LarderError) {
        try ForkGuard.check("set aside")
        try life.openLock.withLock { () throws(LarderError) in
            try setAsideAndStartEmpty(try findDamageLocked("set aside").damage)
        }
    }

    /// Reads the whole database. If it is damaged, copies the readable entries to new files; otherwise throws
    /// `invalidArgument`. Takes as long as reading and writing all entries.
    func salvageIfDamaged() throws(LarderError) -> SalvageSummary {
        try ForkGuard.check("salvage")
        let (found, done) = try life.openLock.withLock { () throws(LarderError) in
            let found = try findDamageLocked("salvage")
            return (found, found.store == nil ? try salvageUnopenedLocked(found.damage) : nil)
        }
        if let done { return done }
        if let store = found.store, let summary = try salvage(store, found.damage) { return summary }
        throw LarderError(.io, "the database is being salvaged already", operation: "salvage", database: name)
    }

    /// Checks all files for damage. Needed even if damage was detected before: if the files were closed since then,
    /// nothing records it. Called with `openLock` held.
    /// - Returns: the damage, and the store that has it if the files can be opened.
    private func findDamageLocked(_ operation: String) throws(LarderError) -> (damage: LarderError, store: EpochStore?)
    {
        if life.isSalvaging {
            throw LarderError(.io, "the database is being salvaged already", operation: operation, database: name)
        }
        do throws(LarderError) {
            switch appliedState.presence {
            case .open(let store): try store.verify()
            case .closed, .failed:
                if try !retryRollbackAndCheckOpen(operation) { try openCurrentEpoch() }
                try appliedState.store?.verify()
            case .absent: break
            case .deleted: throw deletedError(operation)
            case .shut(let error): throw error
            }
        } catch {
            guard error.code == .damaged else { throw error }
            return (error, appliedState.store)
        }
        throw LarderError(
            .invalidArgument, "no damage was found in the database", operation: operation, database: name)
    }

    /// Moves the damaged files to `DAMAGED/` and continues with an empty database under the same policy. Called with
    /// `openLock` held.
    func setAsideAndStartEmpty(_ damage: LarderError) throws(LarderError) {
        let policy = policyOnDisk
        let place = try DamagedFiles.place(of: name, context: context.larder)
        let (store, ticket) = shards.withAllLocked { () -> (EpochStore?, CommitTicket) in
            let store = applied.store
            clearEntries()
            applied.endFiles(leaving: .absent)
            applied.rules = FreshnessRules(policy)
            let ticket = enqueueRemoval(of: store, .setAside) { [files, context] () throws(LarderError) in
                try DamagedFiles.move(files.directory, to: place, name: files.name, context: context.larder)
            }
            return (store, ticket)
        }
        try pipeline.wait(for: ticket)
        life.setAside()
        store?.close()
        DamagedFiles.enforceCap(context.larder)
        context.statistics.setAside.add()
        context.reportDamage("database '\(name)' was damaged and set aside at \(place); an empty one replaces it")
        try create(policy)
    }

    /// The policy in the file POINTER if that can be read; otherwise the last known one.
    var policyOnDisk: DatabasePolicy { ((try? files.readPointer())?.rules ?? appliedState.rules).settings }
}
