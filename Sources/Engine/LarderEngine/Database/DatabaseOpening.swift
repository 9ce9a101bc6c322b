import LarderLevelDB
import LarderPlatform

/// Makes a database ready for use: opens its files, creates them, reopens them after a failed write, or repairs them.
/// All functions are called with `openLock` held.
struct DatabaseOpening {
    let database: Database
    /// Whether the caller holds the checkpointer's turn, without which no checkpoint can run.
    var isInTurn = false

    private var context: EngineContext { database.context }
    private var files: DatabaseFiles { database.files }
    private var name: String { database.name }

    /// Opens the files, or reopens them after a failed write. If there are none and `forWriting` is true, creates them.
    /// - Parameter policy: see ``Database/prepare(forWriting:policy:)``.
    func prepare(forWriting: Bool, _ policy: DatabasePolicy?) throws(LarderError) {
        do throws(LarderError) {
            try prepareOnce(forWriting: forWriting, policy)
        } catch {
            // The file system may be full: free space and try again. A caller that holds the turn gets the error
            // instead: it may be the eviction itself, which frees space.
            guard !isInTurn, error.code == .io || error.code == .writesSuspended else { throw error }
            let logs = database.appliedState.store.map { FileSystem.size(ofLogsIn: $0.path) } ?? 0
            guard context.larder.disk.relieve(logs + EpochStore.openingBytes, takesReserve: true) else { throw error }
            try prepareOnce(forWriting: forWriting, policy)
        }
    }

    private func prepareOnce(forWriting: Bool, _ policy: DatabasePolicy?) throws(LarderError) {
        let state = database.appliedState
        switch state.presence {
        case .open(let store): if forWriting, store.isSuspended { try recover(store) }
        case .absent: if forWriting { try create(policy ?? state.rules.settings) }
        case .failed(let error) where database.life.isSalvaging: throw error
        case .closed, .failed: if try !retryRollbackAndCheckOpen("open") { try openFiles() }
        case .deleted: throw database.deletedError("open")
        case .shut(let error): throw error
        }
    }

    /// Reopens the files after a failed write. That write's data in LevelDB's log may become visible now, so records
    /// that were read earlier must not stay in memory.
    private func recover(_ store: EpochStore) throws(LarderError) {
        try store.recover()
        database.shards.withAllLocked { for shard in database.shards.all { shard.forgetStored() } }
    }

    // MARK: Opening

    private func openFiles() throws(LarderError) {
        do throws(LarderError) {
            try openCurrentEpoch()
        } catch {
            // The directory could not be read at the start. Now it can be read, but it contains no database.
            if database.durableState.isEpochUnknown, case .foreign = files.found {
                let error = LarderError(
                    .io, "\(files.directory) is not a database of this larder; the journal keeps the database's writes",
                    operation: "open", database: name)
                database.set { $0.presence = .failed(error) }
                throw error
            }
            var isNews = true
            if case .failed(let previous) = database.appliedState.presence {
                isNews = previous.description != error.description
            }
            database.set { $0.presence = .failed(error) }
            guard error.code == .damaged, database.isLedger || context.options.onDamage == .salvage else { throw error }
            // Report the damage as an error once, not at every use.
            context.reportDamage(
                "database '\(name)' is damaged: \(error.message)", isNews ? .error : .debug, database: name)
            try repair(error)
        }
    }

    /// Salvages files that cannot be opened because they are damaged, or leaves that to the maintenance thread and
    /// throws.
    private func repair(_ damage: LarderError) throws(LarderError) {
        // A salvage waits for the running checkpoint, so a checkpoint that detects damage must not start one.
        let isAtOnce =
            database.isLedger || database.isSalvagedAtOnce || database.life.needsMoreJournal
            || !context.options.backgroundMaintenance
        if !isInTurn, isAtOnce {
            try database.salvageUnopenedLocked(damage)
        } else {
            database.damage.add(name, damage)
            throw damage
        }
    }

    /// Retries a pending rollback of a failed commit, and returns whether the database is open afterwards. Until the
    /// rollback is done, a database with writes of this commit counts as failed, although its files are open. Called
    /// before ``openCurrentEpoch()``.
    /// - Throws: if the commit cannot be rolled back yet.
    func retryRollbackAndCheckOpen(_ operation: String) throws(LarderError) -> Bool {
        try database.pipeline.rollBackWhatFailed(operation)
        return database.appliedState.store != nil
    }

    /// Opens the epoch (LevelDB) that POINTER names. Called when no epoch is open.
    func openCurrentEpoch() throws(LarderError) {
        let written = try files.readPointer()
        let pointer = withoutFuture(written)
        // Even if opening fails, POINTER determines from now on which operations of the journal are valid.
        database.adoptIfUnknown(pointer)
        let purges = database.isLedger ? nil : try database.tagPurges.complete(areExpected: pointer.hasTagPurges)
        let store = try openStore(pointer)
        if pointer != written { correct(pointer) }
        database.set {
            $0.presence = .open(store)
            $0.adopt(pointer)
            $0.rules.purges = purges
        }
        files.removeOtherEpochs(than: pointer.epoch)
        Replacement.keepSpare(for: files.pointerPath)
        context.report(.info, "opened database '\(name)', policy \(pointer.rules.policy)", database: name)
    }

    private func openStore(_ pointer: PointerFile) throws(LarderError) -> EpochStore {
        let store = try files.open(pointer)
        guard store.isMade else { return store }
        do throws(LarderError) {
            let needed = try database.life.checkJournal(store, files, context)
            // The sequence was taken before the larder's current numbering began. New sequences must be higher.
            if needed > context.sequences.base { database.pipeline.resume(behind: needed) }
        } catch {
            store.close()
            throw error
        }
        return store
    }

    /// Corrects a policy change whose date is in the future, so that it does not expire new entries. If the date is
    /// less than a minute ahead, the engine's time continues from it. If not, the record of time was lost, or an older
    /// version wrote the file while the clock was ahead: the date is changed to now.
    private func withoutFuture(_ pointer: PointerFile) -> PointerFile {
        let now = database.now()
        if pointer.rules.deadBefore < now { return pointer }
        if pointer.rules.deadBefore - now < Self.momentMilliseconds {
            context.time.resume(from: pointer.rules.deadBefore + 1)
            return pointer
        }
        var pointer = pointer
        pointer.rules.deadBefore = max(0, now - 1)
        return pointer
    }

    /// The maximum amount of engine time that a crash can lose, in milliseconds.
    private static let momentMilliseconds: Int64 = 60_000

    /// Writes the correction to POINTER, so that the next start does not correct the date again, to a later time.
    private func correct(_ pointer: PointerFile) {
        context.report(
            .warning,
            "the last change of the policy of database '\(name)' has a date in the future, because the clock was ahead "
                + "then: entries that follow the policy and were stored up to now "
                + "(\(pointer.rules.deadBefore) ms since 1970) are expired", database: name)
        do throws(FileError) {
            _ = try files.replacePointer(by: pointer)
        } catch {
            database.report(.error, "\(error); entries written now may expire at the next start")
        }
    }

    // MARK: Creating

    /// Creates the database's files and opens them.
    func create(_ policy: DatabasePolicy) throws(LarderError) {
        try database.requireInPlace("create")
        let epoch = context.nextEpoch(after: 0)
        try database.roster.creation.withLock { () throws(LarderError) in
            let present = database.roster.all.filter { $0 !== database && $0.exists && !$0.isLedger }.count
            guard database.isLedger || present < context.options.databasesMax else {
                throw LarderError(
                    .tooManyDatabases,
                    "the larder already has \(present) databases, which is its limit "
                        + "(--max-databases): raise it, or delete a database that is no longer needed: in a program "
                        + "with `Cache.delete(named:directory:)`, or remove its directory \(context.directory)/<name> while no "
                        + "process uses the larder", operation: "create", database: name)
            }
            try files.requireAbsent()
            try makeFiles(
                PointerFile(
                    epoch: epoch, rules: FreshnessRules(policy), diskLimit: database.appliedState.diskLimit,
                    indexes: database.appliedState.indexes))
        }
        do throws(LarderError) {
            let store = try openStore(database.appliedState.pointer)
            database.set { $0.presence = .open(store) }
        } catch {
            // Despite the error, the database exists, and is empty.
            database.set { $0.presence = .failed(error) }
            throw error
        }
        context.report(.info, "created database '\(name)', policy \(policy.policy)", database: name)
    }

    private func makeFiles(_ pointer: PointerFile) throws(LarderError) {
        do throws(LarderError) {
            try files.make(pointer)
        } catch {
            // Despite the error, the database may exist: empty, and not open yet.
            if case .database = files.found { adoptCreated(pointer) }
            throw error
        }
        adoptCreated(pointer)
    }

    private func adoptCreated(_ pointer: PointerFile) {
        // A failure is reported, and the write is retried later. Facts of the ledger are not stored before the write
        // has succeeded.
        try? context.sequences.note(name, exists: true)
        database.set {
            $0.presence = .closed
            $0.adopt(pointer)
        }
    }
}
