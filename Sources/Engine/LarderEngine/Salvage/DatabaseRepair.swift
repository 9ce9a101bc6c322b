/// Repairs a damaged database on request: salvages it, or sets it aside.
struct DatabaseRepair {
    let database: Database

    /// Reads the whole database. If it is damaged, moves its files to `DAMAGED/` and continues with an empty database;
    /// otherwise throws `invalidArgument`. Takes as long as reading all files.
    func setAside() throws(LarderError) {
        try ForkGuard.check("set aside")
        try database.life.openLock.withLock { () throws(LarderError) in
            try setAsideAndStartEmpty(try findDamageLocked("set aside").damage)
        }
    }

    /// Reads the whole database. If it is damaged, copies the readable entries to new files; otherwise throws
    /// `invalidArgument`. Takes as long as reading and writing all entries.
    func salvage() throws(LarderError) -> SalvageSummary {
        try ForkGuard.check("salvage")
        let (found, done) = try database.life.openLock.withLock { () throws(LarderError) in
            let found = try findDamageLocked("salvage")
            return (found, found.store == nil ? try database.salvageUnopenedLocked(found.damage) : nil)
        }
        if let done { return done }
        if let store = found.store, let summary = try database.salvage(store, found.damage) { return summary }
        throw isBeingSalvaged("salvage")
    }

    private func isBeingSalvaged(_ operation: String) -> LarderError {
        LarderError(.io, "the database is being salvaged already", operation: operation, database: database.name)
    }

    /// Checks all files for damage. Needed even if damage was detected before, because that is forgotten when the files
    /// are closed. Called with `openLock` held.
    /// - Returns: the damage, and the store that has it if the files can be opened.
    private func findDamageLocked(_ operation: String) throws(LarderError) -> (damage: LarderError, store: EpochStore?)
    {
        if database.life.isSalvaging { throw isBeingSalvaged(operation) }
        do throws(LarderError) {
            switch database.appliedState.presence {
            case .open(let store): try store.verify()
            case .closed, .failed:
                let opening = DatabaseOpening(database: database)
                if try !opening.retryRollbackAndCheckOpen(operation) { try opening.openCurrentEpoch() }
                try database.appliedState.store?.verify()
            case .absent: break
            case .deleted: throw database.deletedError(operation)
            case .shut(let error): throw error
            }
        } catch {
            guard error.code == .damaged else { throw error }
            return (error, database.appliedState.store)
        }
        throw LarderError(
            .invalidArgument, "no damage was found in the database", operation: operation, database: database.name)
    }

    /// Moves the damaged files to `DAMAGED/` and continues with an empty database under the same policy. Called with
    /// `openLock` held.
    private func setAsideAndStartEmpty(_ damage: LarderError) throws(LarderError) {
        let (name, files, context) = (database.name, database.files, database.context)
        // The policy in the file POINTER if that can be read; otherwise the last known one.
        let policy = ((try? files.readPointer())?.rules ?? database.rules).settings
        let place = try DamagedFiles.place(of: name, context: context.larder)
        let (store, ticket) = database.shards.withAllLocked { () -> (EpochStore?, CommitTicket) in
            let store = database.applied.store
            database.clearEntries()
            database.applied.endFiles(leaving: .absent)
            database.applied.rules = FreshnessRules(policy)
            let ticket = database.enqueueRemoval(of: store, .setAside) { () throws(LarderError) in
                try DamagedFiles.move(files.directory, to: place, name: name, context: context.larder)
            }
            return (store, ticket)
        }
        try database.pipeline.wait(for: ticket)
        database.life.setAside()
        store?.close()
        DamagedFiles.enforceCap(context.larder)
        context.statistics.setAside.add()
        context.reportDamage("database '\(name)' was damaged and set aside at \(place); an empty one replaces it")
        try DatabaseOpening(database: database).create(policy)
    }
}
