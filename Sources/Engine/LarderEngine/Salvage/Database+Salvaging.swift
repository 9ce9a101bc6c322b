import LarderLevelDB
import LarderPlatform

/// Salvages a damaged database: copies everything readable, together with its entries in the journal and in memory,
/// into a new epoch.
///
/// 1. *Freeze*: nothing more is written to the damaged LevelDB. Dirty entries stay in memory, and checkpoints append
///   them to the journal again. Reads continue, and fail where they encounter the damage.
/// 2. *Keep*: the files of the LevelDB are hard-linked below `DAMAGED`. The salvage reads these links, which remain as
///   evidence.
/// 3. *Copy* into `.salvage-<epoch>` in the database's directory, which is renamed to `<epoch>` when it is complete and
///   synced.
/// 4. *Switch*: POINTER names the new epoch, and also the old one, whose operations in the journal are still valid.
///
/// After a crash, either the damaged or the new epoch is current. A failed salvage is rolled back, and can be retried.
extension Database {
    /// The files to salvage.
    private struct Patient {
        let epoch: UInt64
        /// Open, or impossible to open.
        let store: EpochStore?
        /// Nil if it cannot be read.
        let pointer: PointerFile?
        let damage: LarderError
    }

    /// The result of a salvage, before it takes effect.
    private struct Salvaged {
        let store: EpochStore
        let journalNeeded: UInt64
        var summary: SalvageSummary
        let evidence: Evidence
    }

    /// Salvages a database whose open LevelDB has reported damage. May take as long as reading and writing all of it.
    /// - Returns: nil if the database's files were replaced in the meantime, or the database is already being salvaged.
    @discardableResult
    func salvage(
        _ store: EpochStore, _ damage: LarderError, shouldStop: @escaping () -> Bool = { false }
    ) throws(LarderError) -> SalvageSummary? {
        let patient: Patient? = life.openLock.withLock {
            let state = appliedState
            guard state.store === store, !life.isSalvaging else { return nil }
            life.isSalvaging = true
            return Patient(epoch: store.epoch, store: store, pointer: state.pointer, damage: damage)
        }
        guard let patient else { return nil }
        defer { life.openLock.withLock { life.isSalvaging = false } }
        checkpointer.holdingTurn { store.indexLock.withLock { store.setFrozen(true) } }
        do throws(LarderError) {
            let salvaged = try build(patient, shouldStop)
            return try life.openLock.withLock { () throws(LarderError) in try replace(patient, by: salvaged) }
        } catch {
            // A store that was closed for the salvage is reopened, as after a failed write.
            if store.isClosed { store.suspend(error) }
            store.setFrozen(false)
            throw error
        }
    }

    /// Salvages a database that cannot be opened because it is damaged. Called with `openLock` held, unless the
    /// database is large: see ``salvageUnopened(_:shouldStop:)``.
    @discardableResult
    func salvageUnopenedLocked(_ damage: LarderError) throws(LarderError) -> SalvageSummary {
        let patient = try unopenedPatient(damage)
        return try replace(patient, by: try build(patient) { false })
    }

    /// Like ``salvageUnopenedLocked(_:)``, for a caller without the lock. For a large database the lock is held only at
    /// the beginning and at the end; in between, every use of the database fails with the damage.
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
        let patient = try life.openLock.withLock { () throws(LarderError) -> Patient? in
            guard case .failed = appliedState.presence, !life.isSalvaging else { return nil }
            let patient = try unopenedPatient(damage)
            life.isSalvaging = true
            return patient
        }
        guard let patient else { return nil }
        defer { life.openLock.withLock { life.isSalvaging = false } }
        let salvaged = try build(patient, shouldStop)
        return try life.openLock.withLock { () throws(LarderError) in try replace(patient, by: salvaged) }
    }

    /// The maximum size in bytes of a database that is salvaged while all its users wait: 64 MiB.
    private static let salvagedAtOnceMax = 64 << 20
    var isSalvagedAtOnce: Bool { files.byteCount <= Self.salvagedAtOnceMax }

    private func unopenedPatient(_ damage: LarderError) throws(LarderError) -> Patient {
        try pipeline.rollBackWhatFailed("salvage")
        do throws(LarderError) {
            let pointer = try files.readPointer()
            return Patient(epoch: pointer.epoch, store: nil, pointer: pointer, damage: damage)
        } catch {
            guard error.code == .damaged else { throw error }
            // If the journal has operations of a newer epoch, the newest files belong to an epoch that was purged.
            let known = shards.withAllLocked { unresolved.epochs.keys.max() ?? 0 }
            return Patient(epoch: max(files.newestEpoch, known), store: nil, pointer: nil, damage: damage)
        }
    }

    // MARK: The new epoch

    private func build(_ patient: Patient, _ shouldStop: @escaping () -> Bool) throws(LarderError) -> Salvaged {
        files.removeUnfinishedSalvages()
        let epoch = context.nextEpoch(after: patient.epoch)
        let parent = files.directory + "/" + DatabaseFiles.salvagePrefix + "\(epoch)"
        let path = files.epochPath(patient.epoch)
        var evidence = try DamagedFiles.keep(path, pointer: files.pointerPath, name, context)
        do throws(LarderError) {
            // Without links the files are read in place, and LevelDB must not change them.
            if evidence.linked == nil { patient.store?.closeFrozen() }
            try files.wrapErrors("salvage") { () throws(FileError) in try FileSystem.makeDirectory(parent) }
            let (copied, frozen) = try copy(patient, from: evidence.linked ?? path, into: parent, epoch, shouldStop)
            try files.wrapErrors("salvage") { () throws(FileError) in
                try FileSystem.rename("\(parent)/\(epoch)", to: files.epochPath(epoch))
                try FileSystem.syncDirectory(files.directory)
            }
            context.disposalQueue.remove(parent)
            try evidence.settle(context)
            var summary = copied.summary(patient.damage.message, at: now())
            if patient.pointer == nil {
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
            evidence.discard(context)
            throw error
        }
    }

    private func copy(
        _ patient: Patient, from source: String, into parent: String, _ epoch: UInt64,
        _ shouldStop: @escaping () -> Bool
    ) throws(LarderError) -> (EpochSalvage, UInt64) {
        let store = try files.makeEpoch(epoch, in: parent)
        // Writes the format record to a table without entries, so that the record stays when tables are removed.
        store.settleMemory()
        defer { store.close() }
        let state = appliedState
        var salvage = EpochSalvage(
            source: source,
            indexing: ExpiryIndex.Rules(state.rules.policy, durable: durableState.rules.policy), shouldStop: shouldStop)
        if patient.epoch == life.epochAheadOfJournal {
            // The content is readable, but inconsistent for unknown keys: it may be newer than the journal's end. It
            // may also be older, if the journal contained an entry for a second time.
            salvage.leaveOut("its LevelDB is ahead of the rest of the journal: only the journal's entries are kept")
        } else if FileSystem.exists(source) {
            try salvage.copy(into: store, of: self)
        }
        if isLedger, salvage.isInDoubt, let ledger = roster.ledger { try ledger.noteLoss(in: store) }
        try store.noteSynced()
        return (salvage, patient.store?.journalNeededWhileFrozen ?? 0)
    }

    // MARK: The switch

    /// Called with `openLock` held.
    private func replace(_ patient: Patient, by salvaged: Salvaged) throws(LarderError) -> SalvageSummary {
        let fresh = salvaged.store
        do throws(LarderError) {
            try checkpointer.withTurn { () throws(LarderError) in
                let needed = max(salvaged.journalNeeded, patient.store?.journalNeededWhileFrozen ?? 0)
                if needed > 0 { try fresh.note(journalNeeded: needed) }
                try fresh.noteSynced()
                if patient.store != nil {
                    try switchOpen(patient, to: fresh)
                } else {
                    try switchUnopened(patient, to: fresh)
                }
            }
        } catch {
            // Unless that has succeeded.
            if fresh.ending == .none { context.disposalQueue.add(fresh) }
            salvaged.evidence.discard(context)
            throw error
        }
        return finish(patient, salvaged)
    }

    private func switchOpen(_ patient: Patient, to fresh: EpochStore) throws(LarderError) {
        let state = appliedState
        guard let old = patient.store, state.store === old else { throw gone() }
        try switchEpoch(
            to: fresh, rules: state.rules, .heir(journalFrom: state.journalFrom), ending: .salvaged,
            operation: "salvage",
            applying: forgetStored)
    }

    private func switchUnopened(_ patient: Patient, to fresh: EpochStore) throws(LarderError) {
        switch appliedState.presence {
        case .closed, .failed: break
        case .absent, .open, .deleted, .shut: throw gone()
        }
        var pointer =
            patient.pointer
            // Without POINTER it is unknown which governed entries had expired, so none of them may return.
            ?? PointerFile(
                epoch: patient.epoch,
                rules: FreshnessRules(policy: context.options.defaultPolicy, deadBefore: max(0, now() - 1)))
        if let written = patient.pointer, (try? files.readPointer()) != written { throw gone() }
        // Without a known epoch, no operations in the journal are valid.
        if pointer.journalFrom == 0 { pointer.journalFrom = fresh.epoch }
        pointer.epoch = fresh.epoch
        pointer.isUnmade = false
        let purges = isLedger ? nil : try completePurges(areExpected: patient.pointer?.hasTagPurges ?? true)
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

    /// Forgets what memory knows about the content of the damaged LevelDB, because the new one differs. Called with all
    /// shard locks held.
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

    /// Called when the new epoch is current. Releases the old epoch, and reports the result.
    private func finish(_ patient: Patient, _ salvaged: Salvaged) -> SalvageSummary {
        var summary = salvaged.summary
        let old = files.epochPath(patient.epoch)
        if salvaged.evidence.linked != nil {
            if let store = patient.store { context.disposalQueue.add(store) } else { context.disposalQueue.remove(old) }
            summary.place = salvaged.evidence.place
        } else {
            patient.store?.close()
            do throws(LarderError) {
                summary.place = try salvaged.evidence.take(old, context)
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
        context.report(.error, "database '\(name)' was damaged (\(summary.damage)) and salvaged: \(summary)")
        if let place = summary.place {
            DamagedFiles.describe(summary.description, in: place, context)
            DamagedFiles.enforceCap(context)
        }
        return summary
    }
}
