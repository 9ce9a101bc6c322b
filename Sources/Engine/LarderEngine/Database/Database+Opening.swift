import LarderLevelDB
import LarderPlatform

/// Opening, creating and closing a database's files.
extension Database {

    /// Opens the files, or reopens them after a failed write. If there are none and `forWriting` is true, creates them.
    /// May block on the disk. Does nothing if the database is ready.
    /// - Parameter policy: for a database that is created. nil means its policy before it lost its files, or the
    ///   larder's default.
    package func prepare(forWriting: Bool, policy: DatabasePolicy? = nil) throws(LarderError) {
        try ForkGuard.check("open")
        try life.openLock.withLock { () throws(LarderError) in try prepareLocked(forWriting: forWriting, policy) }
    }

    /// Opens the files, unless another thread holds `openLock`. For the checkpoint, which must not wait for a thread
    /// that may itself wait for the checkpoint.
    /// - Returns: false if another thread holds the lock.
    func prepareUnlessBusy() throws(LarderError) -> Bool {
        guard life.openLock.tryLock() else { return false }
        defer { life.openLock.unlock() }
        try prepareLocked(forWriting: false, nil, isInTurn: true)
        return true
    }

    /// Called with `openLock` held.
    /// - Parameter isInTurn: whether the caller holds the checkpointer's turn, without which no checkpoint can run.
    private func prepareLocked(
        forWriting: Bool, _ policy: DatabasePolicy?, isInTurn: Bool = false
    ) throws(LarderError) {
        do throws(LarderError) {
            try prepareOnce(forWriting: forWriting, policy, isInTurn: isInTurn)
        } catch {
            // The file system may be full: free space and try again. A caller that holds the turn does not try again,
            // because it may be the eviction itself, which frees space.
            guard !isInTurn, error.code == .io || error.code == .writesSuspended else { throw error }
            let logs = appliedState.store.map { FileSystem.size(ofLogsIn: $0.path) } ?? 0
            guard context.larder.disk.relieve(logs + EpochStore.openingBytes, takesReserve: true) else { throw error }
            try prepareOnce(forWriting: forWriting, policy, isInTurn: isInTurn)
        }
    }

    private func prepareOnce(
        forWriting: Bool, _ policy: DatabasePolicy?, isInTurn: Bool
    ) throws(LarderError) {
        let state = appliedState
        switch state.presence {
        case .open(let store): if forWriting, store.isSuspended { try recover(store) }
        case .absent: if forWriting { try create(policy ?? state.rules.settings) }
        case .failed(let error) where life.isSalvaging: throw error
        case .closed, .failed: if try !retryRollbackAndCheckOpen("open") { try openFiles(isInTurn) }
        case .deleted: throw deletedError("open")
        case .shut(let error): throw error
        }
    }

    /// Reopens the files after a failed write. The write's data in LevelDB's log may become visible now, so nothing
    /// read before may stay in memory.
    private func recover(_ store: EpochStore) throws(LarderError) {
        try store.recover()
        shards.withAllLocked { for shard in shards.all { shard.forgetStored() } }
    }

    // MARK: Opening

    private func openFiles(_ isInTurn: Bool) throws(LarderError) {
        do throws(LarderError) {
            try openCurrentEpoch()
        } catch {
            // The directory could not be read at the start. Now it can, and is not a database.
            if durableState.isEpochUnknown, case .foreign = files.found {
                let error = LarderError(
                    .io, "\(files.directory) is not a database of this larder; the journal keeps the database's writes",
                    operation: "open", database: name)
                shards.withAllLocked { setBoth { $0.presence = .failed(error) } }
                throw error
            }
            var isNews = true
            if case .failed(let previous) = appliedState.presence { isNews = previous.description != error.description }
            shards.withAllLocked { setBoth { $0.presence = .failed(error) } }
            guard error.code == .damaged, isLedger || context.options.onDamage == .salvage else { throw error }
            // Report the damage as an error once, not at every use.
            context.reportDamage("database '\(name)' is damaged: \(error.message)", isNews ? .error : .debug)
            try repair(error, isInTurn)
        }
    }

    /// Salvages files that cannot be opened because they are damaged, or leaves that to the maintenance thread and
    /// throws.
    private func repair(_ damage: LarderError, _ isInTurn: Bool) throws(LarderError) {
        // A salvage takes the checkpointer's turn, so a checkpoint that detects damage would wait for itself.
        if !isInTurn, isLedger || isSalvagedAtOnce || life.needsMoreJournal || !context.options.backgroundMaintenance {
            try salvageUnopenedLocked(damage)
        } else {
            self.damage.add(name, damage)
            throw damage
        }
    }

    /// Retries the rollback of a failed commit, if one is still to be done, and returns whether the database is open
    /// then. Until that rollback, a database that has writes of the commit counts as failed, although its files are
    /// open. Called before ``openCurrentEpoch()``, with `openLock` held.
    /// - Throws: if the commit cannot be rolled back yet.
    func retryRollbackAndCheckOpen(_ operation: String) throws(LarderError) -> Bool {
        try pipeline.rollBackWhatFailed(operation)
        return appliedState.store != nil
    }

    /// Opens the epoch (LevelDB) that POINTER names. Called with `openLock` held, when no epoch is open.
    func openCurrentEpoch() throws(LarderError) {
        let written = try files.readPointer()
        let pointer = withoutFuture(written)
        // Even if opening fails, POINTER determines from now on which operations of the journal are valid.
        adoptIfUnknown(pointer)
        let purges = isLedger ? nil : try tagPurges.complete(areExpected: pointer.hasTagPurges)
        let store = try openStore(pointer)
        if pointer != written { correct(pointer) }
        shards.withAllLocked {
            setBoth {
                $0.presence = .open(store)
                $0.adopt(pointer)
                $0.rules.purges = purges
            }
        }
        files.removeOtherEpochs(than: pointer.epoch)
        Replacement.keepSpare(for: files.pointerPath)
        context.report(.info, "opened database '\(name)', policy \(pointer.rules.policy)")
    }

    /// Takes over the contents of POINTER if it could not be read before: its policy, its limit, and the epochs whose
    /// operations in the journal are valid.
    func adoptIfUnknown(_ pointer: PointerFile) {
        guard durableState.isEpochUnknown else { return }
        shards.withAllLocked {
            setBoth { $0.adopt(pointer) }
            resolve()
        }
    }

    private func openStore(_ pointer: PointerFile) throws(LarderError) -> EpochStore {
        let store = try files.open(pointer)
        guard store.isMade else { return store }
        do throws(LarderError) {
            let needed = try life.checkJournal(store, files, context)
            // The sequence was taken before the larder's current numbering began. New sequences must be higher.
            if needed > context.sequences.base { pipeline.resume(behind: needed) }
        } catch {
            store.close()
            throw error
        }
        return store
    }

    /// Corrects a policy change dated in the future, which would expire new entries at once. If the date is less than a
    /// minute ahead, the engine's time continues from there. Otherwise the date is changed to now: the record of time
    /// was lost, or an older version wrote the file while the clock was ahead.
    private func withoutFuture(_ pointer: PointerFile) -> PointerFile {
        let now = now()
        if pointer.rules.deadBefore < now { return pointer }
        if pointer.rules.deadBefore - now < Self.momentMilliseconds {
            context.time.resume(from: pointer.rules.deadBefore + 1)
            return pointer
        }
        var pointer = pointer
        pointer.rules.deadBefore = max(0, now - 1)
        return pointer
    }

    /// An upper bound of the engine's time that a crash may lose, in milliseconds.
    private static let momentMilliseconds: Int64 = 60_000

    /// Writes the correction to POINTER, so that the next start does not correct the date again, to a later time.
    private func correct(_ pointer: PointerFile) {
        context.report(
            .warning,
            "the last change of the policy of database '\(name)' has a date in the future, because the clock was ahead "
                + "then: entries that follow the policy and were stored up to now "
                + "(\(pointer.rules.deadBefore) ms since 1970) are expired")
        do throws(FileError) {
            _ = try files.replacePointer(by: pointer)
        } catch {
            context.report(.error, "database '\(name)': \(error); entries written now may expire at the next start")
        }
    }

    /// Takes over the contents of POINTER before the files are opened, so that all callers see the policy, and the
    /// valid operations of the journal are known. If POINTER cannot be read, the database keeps the journal's
    /// operations until it can; opening reports the cause. Called before other threads can use the database.
    func adoptPointer() {
        let pointer = try? files.readPointer()
        if let pointer {
            context.noteEpoch(pointer.epoch)
            files.syncWhatWasRead()
        }
        shards.withAllLocked {
            setBoth { state in
                if let pointer { state.adopt(pointer) } else { state.isEpochUnknown = true }
            }
        }
    }

    /// Makes the same change to the applied and to the durable state. Called with all shard locks held.
    func setBoth(_ change: (inout DatabaseState) -> Void) {
        change(&applied)
        change(&durable)
    }

    // MARK: Creating

    /// Creates the database's files and opens them. Called with `openLock` held.
    func create(_ policy: DatabasePolicy) throws(LarderError) {
        try requireInPlace("create")
        let epoch = context.nextEpoch(after: 0)
        try roster.creation.withLock { () throws(LarderError) in
            let present = roster.all.filter { $0 !== self && $0.exists && !$0.isLedger }.count
            guard isLedger || present < context.options.databasesMax else {
                throw LarderError(
                    .tooManyDatabases,
                    "the larder already has \(present) databases, which is its limit "
                        + "(--max-databases): raise it, or delete a database that is no longer needed: in a program "
                        + "with `Cache.delete(named:directory:)`, or remove its directory \(context.directory)/<name> while no "
                        + "process uses the larder", operation: "create", database: name)
            }
            try files.requireAbsent()
            try makeFiles(
                PointerFile(epoch: epoch, rules: FreshnessRules(policy), diskLimit: appliedState.diskLimit))
        }
        do throws(LarderError) {
            let store = try openStore(appliedState.pointer)
            shards.withAllLocked { setBoth { $0.presence = .open(store) } }
        } catch {
            // The database exists anyway, and is empty.
            shards.withAllLocked { setBoth { $0.presence = .failed(error) } }
            throw error
        }
        context.report(.info, "created database '\(name)', policy \(policy.policy)")
    }

    private func makeFiles(_ pointer: PointerFile) throws(LarderError) {
        do throws(LarderError) {
            try files.make(pointer)
        } catch {
            // The database may exist anyway: empty, and not open yet.
            if case .database = files.found { adoptCreated(pointer) }
            throw error
        }
        adoptCreated(pointer)
    }

    private func adoptCreated(_ pointer: PointerFile) {
        // A failure is reported, and the write is retried later. Facts of the ledger are not stored before it has
        // succeeded.
        try? context.sequences.note(name, exists: true)
        shards.withAllLocked {
            setBoth {
                $0.presence = .closed
                $0.adopt(pointer)
            }
        }
    }

    // MARK: Closing

    /// Stops accepting commands: every later use fails with ``LarderError/Code/closed``. Applied changes can still be
    /// committed.
    func beginShutdown() {
        let error = LarderError(.closed, "the larder was closed", operation: "use", database: name)
        life.openLock.withLock { shards.withAllLocked { applied.presence = .shut(error) } }
    }

    /// Closes the files. All applied changes must have been committed.
    func shut() {
        let error = LarderError(.closed, "the larder was closed", operation: "use", database: name)
        life.openLock.withLock {
            let state = shards.withAllLocked {
                defer {
                    clearEntries()
                    setBoth { $0.presence = .shut(error) }
                }
                return durable
            }
            noteThatFilesAreMade(state)
            state.store?.closeInOrder()
        }
    }

    /// Records in POINTER that the epoch's files exist, as ``recordFilesInPointer()`` does, when the larder is closed.
    /// Failures are ignored, because the next start can do without this.
    private func noteThatFilesAreMade(_ state: DatabaseState) {
        guard state.isUnmade, let store = state.store, store.isMade, store.ending == .none else { return }
        var pointer = state.pointer
        pointer.isUnmade = false
        _ = try? files.replacePointer(by: pointer)
    }
}
