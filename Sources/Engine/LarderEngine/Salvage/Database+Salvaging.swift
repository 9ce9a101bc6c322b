import LarderLevelDB
import LarderPlatform

/// Salvages a damaged database: copies everything readable into a new epoch (a new LevelDB), and keeps its entries in
/// the journal and in memory.
///
/// 1. *Freeze*: nothing more is written to the damaged LevelDB. Entries that LevelDB lacks stay in memory, and
///    checkpoints append them to the journal again. Reads continue, and fail where they encounter the damage.
/// 2. *Keep*: the files of the LevelDB are hard-linked below `DAMAGED`. The salvage reads these links, which remain as
///    evidence.
/// 3. *Copy* into `.salvage-<epoch>` in the database's directory, which is renamed to `<epoch>` when it is complete and
///    synced.
/// 4. *Switch*: the file POINTER is replaced. It names the new epoch as the current one, and also the old one, because
///    the old epoch's operations in the journal are still valid.
///
/// After a crash, either the damaged or the new epoch is current. A failed salvage is rolled back, and can be retried.
extension Database {
    /// The damaged epoch that is salvaged, and what is known about it.
    private struct DamagedEpoch {
        let epoch: UInt64
        /// The open LevelDB; nil if it cannot be opened.
        let store: EpochStore?
        /// The content of POINTER; nil if it cannot be read.
        let pointer: PointerFile?
        let damage: LarderError
    }

    /// The result of a salvage, before the switch to the new epoch.
    private struct Salvaged {
        let store: EpochStore
        let journalNeeded: UInt64
        var summary: SalvageSummary
        let evidence: Evidence
    }

    /// Salvages a database whose open LevelDB has reported damage. Reads and rewrites the whole database, so it may
    /// take long.
    /// - Returns: nil if the database's files were replaced in the meantime, or the database is already being salvaged.
    @discardableResult
    func salvage(
        _ store: EpochStore, _ damage: LarderError, shouldStop: @escaping () -> Bool = { false }
    ) throws(LarderError) -> SalvageSummary? {
        let damagedEpoch: DamagedEpoch? = life.openLock.withLock {
            let state = appliedState
            guard state.store === store, !life.isSalvaging else { return nil }
            life.isSalvaging = true
            return DamagedEpoch(epoch: store.epoch, store: store, pointer: state.pointer, damage: damage)
        }
        guard let damagedEpoch else { return nil }
        defer { life.openLock.withLock { life.isSalvaging = false } }
        checkpointer.holdingTurn { store.indexLock.withLock { store.setFrozen(true) } }
        do throws(LarderError) {
            let salvaged = try build(damagedEpoch, shouldStop)
            return try life.openLock.withLock { () throws(LarderError) in try replace(damagedEpoch, by: salvaged) }
        } catch {
            // If the store was closed for the salvage, it is reopened later in the same way as after a failed write.
            if store.isClosed { store.suspend(error) }
            store.setFrozen(false)
            throw error
        }
    }

    /// Salvages a database that cannot be opened because it is damaged. Only for small databases, because all users of
    /// the database wait for `openLock`, which is held. For others see ``salvageUnopened(_:shouldStop:)``.
    @discardableResult
    func salvageUnopenedLocked(_ damage: LarderError) throws(LarderError) -> SalvageSummary {
        let damagedEpoch = try unopenedEpoch(damage)
        return try replace(damagedEpoch, by: try build(damagedEpoch) { false })
    }

    /// Like ``salvageUnopenedLocked(_:)``, for a caller that does not hold `openLock`. For a large database it holds
    /// the lock only at the beginning and at the end; in between, every use of the database throws `damage`.
    /// - Returns: nil if the database was opened in the meantime, or is already being salvaged.
    @discardableResult
    func salvageUnopened(
        _ damage: LarderError, shouldStop: @escaping () -> Bool
    ) throws(LarderError) -> SalvageSummary? {
        if isSalvagedAtOnce {
            return try life.openLock.withLock { () throws(LarderError) in
                guard case .failed = appliedState.presence, !life.isSalvaging else { return nil }
                return try salvageUnopenedLocked(damage)
            }
        }
        let damagedEpoch = try life.openLock.withLock { () throws(LarderError) -> DamagedEpoch? in
            guard case .failed = appliedState.presence, !life.isSalvaging else { return nil }
            let damagedEpoch = try unopenedEpoch(damage)
            life.isSalvaging = true
            return damagedEpoch
        }
        guard let damagedEpoch else { return nil }
        defer { life.openLock.withLock { life.isSalvaging = false } }
        let salvaged = try build(damagedEpoch, shouldStop)
        return try life.openLock.withLock { () throws(LarderError) in try replace(damagedEpoch, by: salvaged) }
    }

    /// The maximum size in bytes of a database that is salvaged while all its users wait: 64 MiB.
    private static let salvagedAtOnceMax = 64 << 20
    var isSalvagedAtOnce: Bool { files.byteCount <= Self.salvagedAtOnceMax }

    private func unopenedEpoch(_ damage: LarderError) throws(LarderError) -> DamagedEpoch {
        try pipeline.rollBackWhatFailed("salvage")
        do throws(LarderError) {
            let pointer = try files.readPointer()
            return DamagedEpoch(epoch: pointer.epoch, store: nil, pointer: pointer, damage: damage)
        } catch {
            guard error.code == .damaged else { throw error }
            // If the journal has operations of a newer epoch than the newest files, the epoch of these files was
            // purged.
            let known = shards.withAllLocked { unresolved.epochs.keys.max() ?? 0 }
            return DamagedEpoch(epoch: max(files.newestEpoch, known), store: nil, pointer: nil, damage: damage)
        }
    }

    // MARK: The new epoch

    private func build(_ damagedEpoch: DamagedEpoch, _ shouldStop: @escaping () -> Bool) throws(LarderError) -> Salvaged
    {
        files.removeUnfinishedSalvages()
        let epoch = context.nextEpoch(after: damagedEpoch.epoch)
        let parent = files.directory + "/" + DatabaseFiles.salvagePrefix + "\(epoch)"
        let path = files.epochPath(damagedEpoch.epoch)
        var evidence = try DamagedFiles.keep(path, pointer: files.pointerPath, name, context.larder)
        do throws(LarderError) {
            // Without hard links, the original files are read, so LevelDB is closed to keep it from changing them.
            if evidence.linked == nil { damagedEpoch.store?.closeFrozen() }
            try files.wrapErrors("salvage") { () throws(FileError) in try FileSystem.makeDirectory(parent) }
            let (copied, frozen) = try copy(
                damagedEpoch, from: evidence.linked ?? path, into: parent, epoch, shouldStop)
            try files.wrapErrors("salvage") { () throws(FileError) in
                try FileSystem.rename("\(parent)/\(epoch)", to: files.epochPath(epoch))
                try FileSystem.syncDirectory(files.directory)
            }
            context.disposalQueue.remove(parent)
            try evidence.makePermanent(context.larder)
            var summary = copied.summary(damagedEpoch.damage.message, at: now())
            if damagedEpoch.pointer == nil {
                summary.doubts.append(
                    "\(PointerFile.name) is lost, and with it the policy: entries without their own policy count as expired"
                )
            }
            return Salvaged(
                store: try files.open(epoch: epoch), journalNeeded: max(copied.journalNeeded, frozen),
                summary: summary,
                evidence: evidence)
        } catch {
            context.disposalQueue.remove(parent)
            context.disposalQueue.remove(files.epochPath(epoch))
            evidence.discard(context.larder)
            throw error
        }
    }

    private func copy(
        _ damagedEpoch: DamagedEpoch, from source: String, into parent: String, _ epoch: UInt64,
        _ shouldStop: @escaping () -> Bool
    ) throws(LarderError) -> (EpochSalvage, UInt64) {
        let store = try files.makeEpoch(epoch, in: parent)
        // Makes LevelDB write the record of the format version to a table of its own. Later, tables with entries may be
        // removed to free space, and this record must stay.
        store.flushMemtable()
        defer { store.close() }
        let state = appliedState
        var salvage = EpochSalvage(
            source: source,
            indexing: ExpiryIndex.Rules(state.rules.policy, durable: durableState.rules.policy), shouldStop: shouldStop)
        if damagedEpoch.epoch == life.epochAheadOfJournal {
            // LevelDB is readable, but its values do not match the rest of the journal, and it is unknown for which
            // keys. A value may be newer than the journal's end. It may also be older, if a newer one was only in the
            // lost part.
            salvage.leaveOut("its LevelDB does not match the rest of the journal: only the journal's entries are kept")
        } else if FileSystem.exists(source) {
            try salvage.copy(into: store, of: self)
        }
        if isLedger, salvage.isInDoubt, let ledger = roster.ledger { try ledger.noteLoss(in: store) }
        try store.noteSynced()
        return (salvage, damagedEpoch.store?.journalNeededWhileFrozen ?? 0)
    }

    // MARK: The switch

    /// Makes the salvaged epoch the current one. Called with `openLock` held.
    private func replace(_ damagedEpoch: DamagedEpoch, by salvaged: Salvaged) throws(LarderError) -> SalvageSummary {
        let fresh = salvaged.store
        do throws(LarderError) {
            try checkpointer.withTurn { () throws(LarderError) in
                let needed = max(salvaged.journalNeeded, damagedEpoch.store?.journalNeededWhileFrozen ?? 0)
                if needed > 0 { try fresh.note(journalNeeded: needed) }
                try fresh.noteSynced()
                if damagedEpoch.store != nil {
                    try switchOpen(damagedEpoch, to: fresh)
                } else {
                    try switchUnopened(damagedEpoch, to: fresh)
                }
            }
        } catch {
            // If the switch has failed, it may already have ended the new store and queued it for removal.
            if fresh.ending == .none { context.disposalQueue.add(fresh) }
            salvaged.evidence.discard(context.larder)
            throw error
        }
        return finish(damagedEpoch, salvaged)
    }

    private func switchOpen(_ damagedEpoch: DamagedEpoch, to fresh: EpochStore) throws(LarderError) {
        let state = appliedState
        guard let old = damagedEpoch.store, state.store === old else { throw gone() }
        try switchEpoch(
            to: fresh, rules: state.rules, .heir(journalFrom: state.journalFrom), ending: .salvaged,
            operation: "salvage",
            applying: forgetStored)
    }

    private func switchUnopened(_ damagedEpoch: DamagedEpoch, to fresh: EpochStore) throws(LarderError) {
        switch appliedState.presence {
        case .closed, .failed: break
        case .absent, .open, .deleted, .shut: throw gone()
        }
        var pointer =
            damagedEpoch.pointer
            // Without POINTER the database's policy is unknown, and with it which entries had expired. So all entries
            // that follow this policy count as expired.
            ?? PointerFile(
                epoch: damagedEpoch.epoch,
                rules: FreshnessRules(policy: context.options.defaultPolicy, deadBefore: max(0, now() - 1)))
        if let written = damagedEpoch.pointer, (try? files.readPointer()) != written { throw gone() }
        // If the old epoch is unknown (0), the only valid operations in the journal are those of the new epoch.
        if pointer.journalFrom == 0 { pointer.journalFrom = fresh.epoch }
        pointer.epoch = fresh.epoch
        pointer.isUnmade = false
        let purges = isLedger ? nil : try completePurges(areExpected: damagedEpoch.pointer?.hasTagPurges ?? true)
        pointer.hasTagPurges = purges != nil
        let unsynced = try files.wrapErrors("salvage") { () throws(FileError) in
            try files.replacePointer(by: pointer)
        }
        if let unsynced { context.report(.error, "\(unsynced); a machine failure may undo the salvage") }
        shards.withAllLocked {
            forgetStored()
            setBoth {
                $0.adopt(pointer)
                $0.rules.purges = purges
                $0.presence = .open(fresh)
            }
            resolve()
        }
    }

    /// Discards what memory has recorded about the content of the damaged LevelDB, such as which keys it has, because
    /// the content of the new LevelDB differs. Called with all shard locks held.
    private func forgetStored() {
        for shard in shards.all {
            shard.forgetStored()
            shard.table.forgetIndexed()
        }
    }

    private func gone() -> LarderError {
        LarderError(
            .io, "the database's files were replaced during the operation", operation: "salvage", database: name)
    }

    /// Releases the old epoch, and reports the result. Called after the new epoch has become current.
    private func finish(_ damagedEpoch: DamagedEpoch, _ salvaged: Salvaged) -> SalvageSummary {
        var summary = salvaged.summary
        let old = files.epochPath(damagedEpoch.epoch)
        if salvaged.evidence.linked != nil {
            if let store = damagedEpoch.store {
                context.disposalQueue.add(store)
            } else {
                context.disposalQueue.remove(old)
            }
            summary.place = salvaged.evidence.place
        } else {
            damagedEpoch.store?.close()
            do throws(LarderError) {
                summary.place = try salvaged.evidence.take(old, context.larder)
            } catch {
                context.report(.error, "the damaged files of database '\(name)' cannot be kept: \(error)")
                context.disposalQueue.remove(old)
            }
        }
        life.salvaged(summary)
        context.statistics.salvages.add()
        context.statistics.salvagedPieces.add(summary.pieces)
        context.statistics.salvagedRanges.add(summary.lostCount)
        if !summary.doubts.isEmpty { context.statistics.salvagesInDoubt.add() }
        context.reportDamage("database '\(name)' was damaged (\(summary.damage)) and salvaged: \(summary)")
        if let place = summary.place {
            DamagedFiles.describe(summary.description, in: place, context.larder)
            DamagedFiles.enforceCap(context.larder)
        }
        return summary
    }
}
