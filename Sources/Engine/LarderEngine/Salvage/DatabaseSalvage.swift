import LarderLevelDB
import LarderPlatform

/// A salvage of a damaged database: copies everything readable into a new epoch (a new LevelDB), and keeps its entries
/// in the journal and in memory.
///
/// 1. *Freeze*: nothing more is written to the damaged LevelDB. Entries that LevelDB lacks stay in memory, and
///    checkpoints append them to the journal again. Reads continue, and fail where they encounter the damage.
/// 2. *Keep*: the files of the LevelDB are hard-linked below `DAMAGED`. The salvage reads these links, which remain as
///    evidence.
/// 3. *Copy* into `.salvage-<epoch>` in the database's directory. The copy is renamed to `<epoch>` when it is
///    complete and synced.
/// 4. *Switch*: the file POINTER is replaced. It names the new epoch as the current one. It also names the old epoch,
///    whose operations in the journal are still valid.
///
/// After a crash, either the damaged or the new epoch is current. A failed salvage is rolled back, and can be retried.
struct DatabaseSalvage {
    private let database: Database
    /// The number of the damaged epoch.
    private let epoch: UInt64
    /// The open LevelDB of the damaged epoch; nil if it cannot be opened.
    private let store: EpochStore?
    /// The content of POINTER; nil if it cannot be read.
    private let pointer: PointerFile?
    private let damage: LarderError
    private let shouldStop: () -> Bool

    private var name: String { database.name }
    private var files: DatabaseFiles { database.files }
    private var context: EngineContext { database.context }

    /// The copy, before the switch to it.
    private struct Salvaged {
        let store: EpochStore
        let journalNeeded: UInt64
        var summary: SalvageSummary
        let evidence: Evidence
    }

    /// Begins a salvage. Called with `openLock` held.
    /// - Parameters:
    ///   - store: the open LevelDB that has reported damage; nil if the database cannot be opened.
    ///   - shouldStop: returns true if the larder is being closed, and the salvage must end with an error.
    init(
        _ database: Database, _ store: EpochStore?, _ damage: LarderError, shouldStop: @escaping () -> Bool
    ) throws(LarderError) {
        (self.database, self.store, self.damage, self.shouldStop) = (database, store, damage, shouldStop)
        if let store {
            (epoch, pointer) = (store.epoch, database.appliedState.pointer)
            return
        }
        try database.pipeline.rollBackWhatFailed("salvage")
        do throws(LarderError) {
            let pointer = try database.files.readPointer()
            (epoch, self.pointer) = (pointer.epoch, pointer)
        } catch {
            guard error.code == .damaged else { throw error }
            // If the journal has operations of a newer epoch than the newest files, the epoch of these files was
            // purged.
            let known = database.shards.withAllLocked { database.unresolved.epochs.keys.max() ?? 0 }
            (epoch, pointer) = (max(database.files.newestEpoch, known), nil)
        }
    }

    /// Salvages the database. Called without `openLock`, and takes it only for the switch at the end.
    func run() throws(LarderError) -> SalvageSummary {
        defer { database.life.openLock.withLock { database.life.isSalvaging = false } }
        if let store { database.checkpointer.withTurn { store.indexLock.withLock { store.setFrozen(true) } } }
        do throws(LarderError) {
            let salvaged = try build()
            return try database.life.openLock.withLock { () throws(LarderError) in try replace(by: salvaged) }
        } catch {
            if let store {
                // If the store was closed for the salvage, it is reopened later in the same way as after a failed
                // write.
                if store.isClosed { store.suspend(error) }
                store.setFrozen(false)
            }
            throw error
        }
    }

    /// Salvages the database while its users wait. Called with `openLock` held.
    func runLocked() throws(LarderError) -> SalvageSummary { try replace(by: try build()) }

    // MARK: The new epoch

    private func build() throws(LarderError) -> Salvaged {
        files.removeUnfinishedSalvages()
        let epoch = context.nextEpoch(after: self.epoch)
        let parent = files.directory + "/" + DatabaseFiles.salvagePrefix + "\(epoch)"
        let path = files.epochPath(self.epoch)
        var evidence = try DamagedFiles.keep(path, pointer: files.pointerPath, name, context.larder)
        do throws(LarderError) {
            // Without hard links, the original files are read, so LevelDB is closed to keep it from changing them.
            if evidence.linked == nil { store?.closeFrozen() }
            try files.wrapErrors("salvage") { () throws(FileError) in try FileSystem.makeDirectory(parent) }
            let (copied, frozen) = try copy(from: evidence.linked ?? path, into: parent, epoch)
            try files.wrapErrors("salvage") { () throws(FileError) in
                try FileSystem.rename("\(parent)/\(epoch)", to: files.epochPath(epoch))
                try FileSystem.syncDirectory(files.directory)
            }
            context.disposalQueue.remove(parent)
            try evidence.makePermanent(context.larder)
            var summary = copied.summary(damage.message, at: database.now())
            if pointer == nil {
                summary.doubts.append(
                    "\(PointerFile.name) is lost, and with it the policy: entries without their own policy count as expired"
                )
            }
            return Salvaged(
                store: try files.open(epoch: epoch), journalNeeded: max(copied.journalNeeded, frozen),
                summary: summary, evidence: evidence)
        } catch {
            context.disposalQueue.remove(parent)
            context.disposalQueue.remove(files.epochPath(epoch))
            evidence.discard(context.larder)
            throw error
        }
    }

    private func copy(
        from source: String, into parent: String, _ epoch: UInt64
    ) throws(LarderError) -> (EpochSalvage, UInt64) {
        let fresh = try files.makeEpoch(epoch, in: parent)
        // Makes LevelDB write the record of the format version to a table of its own. Later, tables with entries may be
        // removed to free space, and this record must stay.
        fresh.flushMemtable()
        defer { fresh.close() }
        var salvage = EpochSalvage(
            source: source,
            indexing: ExpiryIndex.Rules(database.policy, durable: database.durableState.rules.policy),
            shouldStop: shouldStop)
        if self.epoch == database.life.epochAheadOfJournal {
            // LevelDB is readable, but its values do not match the rest of the journal, and it is unknown for which
            // keys. A value may be newer than the journal's end. It may also be older, if the newer value was only in
            // the lost part.
            salvage.leaveOut("its LevelDB does not match the rest of the journal: only the journal's entries are kept")
        } else if FileSystem.exists(source) {
            try salvage.copy(into: fresh, of: database)
        }
        if database.isLedger, salvage.isInDoubt, let ledger = database.roster.ledger { try ledger.noteLoss(in: fresh) }
        try fresh.noteSynced()
        return (salvage, store?.journalNeededWhileFrozen ?? 0)
    }

    // MARK: The switch

    /// Makes the salvaged epoch the current one. Called with `openLock` held.
    private func replace(by salvaged: Salvaged) throws(LarderError) -> SalvageSummary {
        let fresh = salvaged.store
        do throws(LarderError) {
            try database.checkpointer.withTurn { () throws(LarderError) in
                let needed = max(salvaged.journalNeeded, store?.journalNeededWhileFrozen ?? 0)
                if needed > 0 { try fresh.note(journalNeeded: needed) }
                try fresh.noteSynced()
                if let store { try switchOpen(store, to: fresh) } else { try switchUnopened(to: fresh) }
            }
        } catch {
            // If the switch has failed, it may already have ended the new store and queued it for removal.
            if fresh.ending == .none { context.disposalQueue.add(fresh) }
            salvaged.evidence.discard(context.larder)
            throw error
        }
        return finish(salvaged)
    }

    private func switchOpen(_ old: EpochStore, to fresh: EpochStore) throws(LarderError) {
        let state = database.appliedState
        guard state.store === old else { throw gone() }
        try database.switchEpoch(
            to: fresh, rules: state.rules, .heir(journalFrom: state.journalFrom), ending: .salvaged,
            operation: "salvage", applying: forgetStored)
    }

    private func switchUnopened(to fresh: EpochStore) throws(LarderError) {
        switch database.appliedState.presence {
        case .closed, .failed: break
        case .absent, .open, .deleted, .shut: throw gone()
        }
        if let pointer, (try? files.readPointer()) != pointer { throw gone() }
        var next =
            pointer
            // Without POINTER, the database's policy is unknown. So it is also unknown which entries had expired, and
            // all entries that follow the policy count as expired.
            ?? PointerFile(
                epoch: epoch,
                rules: FreshnessRules(policy: context.options.defaultPolicy, deadBefore: max(0, database.now() - 1)))
        // If the old epoch is unknown (0), only operations of the new epoch in the journal are valid.
        if next.journalFrom == 0 { next.journalFrom = fresh.epoch }
        next.epoch = fresh.epoch
        next.isUnmade = false
        let purges =
            database.isLedger ? nil : try database.tagPurges.complete(areExpected: pointer?.hasTagPurges ?? true)
        next.hasTagPurges = purges != nil
        let unsynced = try files.wrapErrors("salvage") { () throws(FileError) in
            try files.replacePointer(by: next)
        }
        if let unsynced { context.report(.error, "\(unsynced); a machine failure may undo the salvage") }
        database.shards.withAllLocked {
            forgetStored()
            database.setBoth {
                $0.adopt(next)
                $0.rules.purges = purges
                $0.presence = .open(fresh)
            }
            database.resolve()
        }
    }

    /// Discards what memory has recorded about the content of the damaged LevelDB, such as which keys it has, because
    /// the content of the new LevelDB differs. Called with all shard locks held.
    private func forgetStored() {
        for shard in database.shards.all {
            shard.forgetStored()
            shard.table.forgetIndexed()
        }
    }

    private func gone() -> LarderError {
        LarderError(
            .io, "the database's files were replaced during the operation", operation: "salvage", database: name)
    }

    /// Releases the old epoch, and reports the result. Called after the new epoch has become current.
    private func finish(_ salvaged: Salvaged) -> SalvageSummary {
        var summary = salvaged.summary
        let old = files.epochPath(epoch)
        if salvaged.evidence.linked != nil {
            if let store {
                context.disposalQueue.add(store)
            } else {
                context.disposalQueue.remove(old)
            }
            summary.place = salvaged.evidence.place
        } else {
            store?.close()
            do throws(LarderError) {
                summary.place = try salvaged.evidence.take(old, context.larder)
            } catch {
                context.report(
                    .error, "the damaged files of database '\(name)' cannot be kept: \(error)", database: name)
                context.disposalQueue.remove(old)
            }
        }
        database.life.salvaged(summary)
        context.statistics.salvages.add()
        context.statistics.salvagedPieces.add(summary.pieces)
        context.statistics.salvagedRanges.add(summary.lostCount)
        if !summary.doubts.isEmpty { context.statistics.salvagesInDoubt.add() }
        context.reportDamage(
            "database '\(name)' was damaged (\(summary.damage)) and salvaged: \(summary)", database: name)
        if let place = summary.place {
            DamagedFiles.describe(summary.description, in: place, context.larder)
            DamagedFiles.enforceCap(context.larder)
        }
        return summary
    }
}

extension Database {
    /// Salvages a database that has reported damage. Reads and rewrites the whole database, so it may take long.
    /// Meanwhile, if the database is not open, every use throws `damage`. If it is small, its users wait instead.
    /// - Parameter store: the damaged LevelDB; nil if it cannot be opened.
    /// - Returns: nil if the database's files were opened or replaced in the meantime, or the database is already being
    ///   salvaged.
    @discardableResult
    func salvage(
        _ store: EpochStore?, _ damage: LarderError, shouldStop: @escaping () -> Bool = { false }
    ) throws(LarderError) -> SalvageSummary? {
        let isAtOnce = store == nil && isSalvagedAtOnce
        var summary: SalvageSummary?
        let salvage = try life.openLock.withLock { () throws(LarderError) -> DatabaseSalvage? in
            let isStillDamaged = store == nil ? appliedState.isFailed : appliedState.store === store
            guard isStillDamaged, !life.isSalvaging else { return nil }
            if isAtOnce {
                summary = try salvageUnopenedLocked(damage)
                return nil
            }
            let salvage = try DatabaseSalvage(self, store, damage, shouldStop: shouldStop)
            life.isSalvaging = true
            return salvage
        }
        return try salvage?.run() ?? summary
    }

    /// Salvages a database that cannot be opened because it is damaged. Called with `openLock` held, and so only for
    /// small databases; for others see ``salvage(_:_:shouldStop:)``.
    @discardableResult
    func salvageUnopenedLocked(_ damage: LarderError) throws(LarderError) -> SalvageSummary {
        try DatabaseSalvage(self, nil, damage) { false }.runLocked()
    }

    /// Whether the database is so small that it is salvaged while all its users wait: at most 64 MiB.
    var isSalvagedAtOnce: Bool { files.byteCount <= 64 << 20 }
}

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
        context.reportDamage(
            "database '\(name)' was damaged and set aside at \(place); an empty one replaces it", database: name)
        try DatabaseOpening(database: database).create(policy)
    }
}
