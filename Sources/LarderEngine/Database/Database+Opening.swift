import LevelDB

/// Opening, creating and closing: what brings a database's files in and out of use.
extension Database {

    /// Opens the files, creates them if it is for writing and there are none, reopens them after a failed write. May
    /// block on the disk. Does nothing when the database is ready.
    /// - Parameter policy: for a database that is created; where nil, the one it had before its files were given up, or
    ///   the larder's default.
    package func prepare(forWriting: Bool, policy: UpdatePolicy? = nil) throws(LarderError) {
        try ForkGuard.check("open")
        try openLock.withLock { () throws(LarderError) in try prepareLocked(forWriting: forWriting, policy) }
    }

    /// Opens the files, unless another thread is about to do something with them. For the checkpoint, which must not wait
    /// for one that may wait for it.
    /// - Returns: false when another thread is.
    func prepareUnlessBusy() throws(LarderError) -> Bool {
        guard openLock.tryLock() else { return false }
        defer { openLock.unlock() }
        try prepareLocked(forWriting: false, nil, isInTurn: true)
        return true
    }

    /// Called with `openLock` held.
    /// - Parameter isInTurn: whether the caller has the checkpointer's turn.
    private func prepareLocked(
        forWriting: Bool, _ policy: UpdatePolicy?, isInTurn: Bool = false
    ) throws(LarderError) {
        let state = appliedState
        switch state.presence {
        case .open(let store): if forWriting, store.isSuspended { try recover(store) }
        case .absent: if forWriting { try create(policy ?? state.rules.policy) }
        case .failed(let error) where salvage.isUnderWay: throw error
        case .closed, .failed: if try !isOpenAfterAll("open") { try openFiles(isInTurn) }
        case .deleted: throw deletedError("open")
        case .shut(let error): throw error
        }
    }

    /// Reopens the files after a failed write. What that write left in LevelDB's log may come to light now, so that
    /// nothing read before may stay in memory.
    private func recover(_ store: EpochStore) throws(LarderError) {
        try store.recover()
        withAllShards { for index in 0..<Shard.count { shard(index).forgetStored() } }
    }

    // MARK: Opening

    private func openFiles(_ isInTurn: Bool) throws(LarderError) {
        do throws(LarderError) {
            try openCurrentEpoch()
        } catch {
            // What could not be read at the start turns out to be something else.
            if durableState.isEpochUnknown, case .foreign = DatabaseDirectory(directory) {
                let error = LarderError(
                    .io, "\(directory) is no database of this larder; what the journal has for it is kept",
                    operation: "open", database: name)
                withAllShards { setBoth { $0.presence = .failed(error) } }
                throw error
            }
            var isNews = true
            if case .failed(let former) = appliedState.presence { isNews = former.description != error.description }
            withAllShards { setBoth { $0.presence = .failed(error) } }
            guard error.code == .damaged, context.options.onDamage == .salvage else { throw error }
            // Said once, not with every use.
            context.report(isNews ? .error : .debug, "database '\(name)' is damaged: \(error.message)")
            try mend(error, isInTurn)
        }
    }

    /// Goes on after damage that keeps the files from being opened.
    private func mend(_ damage: LarderError, _ isInTurn: Bool) throws(LarderError) {
        // A salvage takes the checkpointer's turn: a checkpoint that meets damage must not wait for itself.
        if !isInTurn, isSalvagedAtOnce || needsMoreJournal || !context.options.backgroundMaintenance {
            try salvageUnopenedLocked(damage)
        } else {
            self.damage.add(name, damage)
            throw damage
        }
    }

    /// Whether the files are open although the state was not: while a failed commit is not rolled back, a database that was
    /// written to counts as failed. To be asked before ``openCurrentEpoch()``. Called with `openLock` held.
    /// - Throws: while it cannot be rolled back.
    func isOpenAfterAll(_ operation: String) throws(LarderError) -> Bool {
        try pipeline.rollBackWhatFailed(operation)
        return appliedState.store != nil
    }

    /// Opens the epoch that POINTER names. Called with `openLock` held, when none is open.
    func openCurrentEpoch() throws(LarderError) {
        let written = try readPointer()
        let pointer = withoutFuture(written)
        if durableState.isEpochUnknown {
            // Whatever becomes of the files: from here on it is known what of the journal counts.
            withAllShards {
                setBoth { $0.adopt(pointer) }
                resolve()
            }
        }
        let store = try openStore(pointer)
        if pointer != written { correct(pointer) }
        withAllShards {
            setBoth {
                $0.presence = .open(store)
                $0.adopt(pointer)
            }
        }
        removeOtherEpochs(than: pointer.epoch)
        Replacement.keepSpare(for: directory + "/" + PointerFile.name)
        context.report(.info, "opened database '\(name)', policy \(pointer.rules.policy)")
    }

    private func openStore(_ pointer: PointerFile) throws(LarderError) -> EpochStore {
        let path = epochPath(pointer.epoch)
        try renewCurrent(path)
        // LevelDB, told to create, would empty a directory whose CURRENT is missing; so it is never told to here, and
        // such a directory is damage.
        switch LevelDB.Database.containsDatabaseFiles(path: path) {
        case .database: break
        case .absentOrEmpty:
            guard pointer.isUnmade else { throw damaged("its files are gone from \(path)") }
            return emptyStore(pointer.epoch)
        case .damaged: throw damaged("CURRENT is missing or cut short in \(path)")
        }
        let store = try openFiles(ofEpoch: pointer.epoch)
        do throws(LarderError) {
            try checkFormat(store)
            try checkJournal(store)
        } catch {
            store.close()
            throw error
        }
        return store
    }

    /// Finishes what a failure of the machine has left of LevelDB's change to a new manifest. Nothing is lost by that.
    private func renewCurrent(_ path: String) throws(LarderError) {
        do {
            guard let manifest = try EpochInspection.renewCurrent(path) else { return }
            context.report(
                .warning,
                "database '\(name)': CURRENT did not name LevelDB's newest manifest, as after a failure of the machine; it names "
                    + "\(manifest) now, and nothing is lost")
        } catch {
            throw LarderError(.io, "\(error)", operation: "open", database: name, underlying: error)
        }
    }

    /// Opens the files of an epoch, which are there.
    func openFiles(ofEpoch epoch: UInt64) throws(LarderError) -> EpochStore {
        try EpochStore(
            path: epochPath(epoch), epoch: epoch, databaseName: name, create: false, context: context.larder,
            onDamage: onDamage)
    }

    /// A policy that was changed at a time that the larder does not know of must not make what is written from now on dead
    /// on arrival. Time had come so far: it goes on from there if that is a moment. Otherwise what is known of the time is
    /// lost, or an older version has written the file when the clock was ahead.
    private func withoutFuture(_ pointer: PointerFile) -> PointerFile {
        let now = now()
        if pointer.rules.deadBefore < now { return pointer }
        if pointer.rules.deadBefore - now < Self.momentMilliseconds {
            context.time.goOn(from: pointer.rules.deadBefore + 1)
            return pointer
        }
        var pointer = pointer
        pointer.rules.deadBefore = max(0, now - 1)
        return pointer
    }

    /// How much of the engine's time a crash may cost, and more.
    private static let momentMilliseconds: Int64 = 60_000

    /// Writes what was corrected, so that the next start does not correct it to its own, later time.
    private func correct(_ pointer: PointerFile) {
        context.report(
            .warning,
            "the policy of database '\(name)' was changed when the clock was ahead, and nothing is known of that time any "
                + "more: governed entries stored until now, \(pointer.rules.deadBefore), are expired")
        do throws(FileError) {
            _ = try FileSystem.replace(directory + "/" + PointerFile.name, with: Array(pointer.text.utf8))
        } catch {
            context.report(.error, "database '\(name)': \(error); entries written now may not outlive the next start")
        }
    }

    /// Takes over what POINTER says of files that are not opened yet: the policy, so that whoever asks hears the right one, and
    /// the epoch, which tells what of the journal counts. Where it cannot be read, what the journal has is kept until it can;
    /// what is wrong with the file shows when the database is opened. Called before anybody else knows the database.
    func adoptPointer() {
        let pointer = try? readPointer()
        if let pointer {
            context.noteEpoch(pointer.epoch)
            syncWhatWasRead()
        }
        withAllShards {
            setBoth { state in
                if let pointer { state.adopt(pointer) } else { state.isEpochUnknown = true }
            }
        }
    }

    /// The process before may have ended between the rename of POINTER and the sync of its directory: whoever has heard of a
    /// policy from here on must not find the former one after a failure of the machine.
    private func syncWhatWasRead() {
        do throws(FileError) {
            try FileSystem.syncDirectory(directory)
        } catch {
            context.report(.error, "\(error); a failure of the machine now may undo a change of database '\(name)'")
        }
    }

    func readPointer() throws(LarderError) -> PointerFile {
        do {
            let path = directory + "/" + PointerFile.name
            if FileSystem.isNoFile(path) {
                throw LarderError(
                    .io,
                    "\(path) is no file: nothing was changed, and the journal keeps what it has; move it away and put "
                        + "\(PointerFile.name) back, or delete the database",
                    operation: "open", database: name)
            }
            guard let bytes = try FileSystem.read(path) else {
                throw damaged("\(PointerFile.name) is missing in \(directory)")
            }
            return try PointerFile(parsing: bytes)
        } catch let error as FileError {
            throw LarderError(.io, error.description, operation: "open", database: name, underlying: error)
        } catch PointerFile.Defect.newerFormat(let version) {
            throw newer("its \(PointerFile.name) has format \(version)")
        } catch PointerFile.Defect.malformed(let why) {
            throw damaged("\(PointerFile.name) cannot be read: \(why)")
        } catch {
            throw (error as? LarderError) ?? damaged("\(error)")
        }
    }

    private func checkFormat(_ store: EpochStore) throws(LarderError) {
        let value = try store.access("open") { (database) throws(LevelDBError) in
            try database.get(EpochMetadata.formatKey)
        }
        guard let value, let version = value.first, version > 0 else { throw damaged("it has no format record") }
        guard version <= EpochMetadata.formatVersion else { throw newer("its entries have format \(version)") }
    }

    /// Where the journal's end was lost, LevelDB may have a part of what stood there. Looked at once: what checkpoints of
    /// this process note, the journal has.
    private func checkJournal(_ store: EpochStore) throws(LarderError) {
        let end = context.journalEnd
        guard !hasCheckedJournal, end != .max || context.sequences.origin == .unknown else { return }
        let value = try store.access("open") { (database) throws(LevelDBError) in
            try database.get(EpochMetadata.journalKey)
        }
        let needed = value.flatMap { $0.withUnsafeBytes { BigEndian.read($0, at: 0) } } ?? 0
        if context.sequences.isLossProven(needed: needed, end: end) {
            epochAheadOfJournal = store.epoch
            throw damaged("it needs the journal up to \(needed), which is lost behind \(end)")
        }
        hasCheckedJournal = true
        // Of before the larder kept count. What comes is to be above it.
        if needed > context.sequences.base { pipeline.goOn(behind: needed) }
    }

    private func damaged(_ why: String) -> LarderError {
        LarderError(
            .damaged, "the database is damaged: \(why). Nothing was changed; salvage it, or set it aside",
            operation: "open", database: name)
    }

    private func newer(_ what: String) -> LarderError {
        LarderError(
            .newerFormat,
            "the database was written by a newer Larder: \(what), this one reads "
                + "\(PointerFile.formatVersion). Use that Larder, or delete the database",
            operation: "open", database: name)
    }

    /// What a crash between two epochs left behind.
    func removeOtherEpochs(than current: UInt64) {
        for entry in (try? FileSystem.list(directory)) ?? [] {
            let isEpoch = UInt64(entry).map { $0 != current }
            let isUnfinished = entry.hasPrefix(EpochStore.makingPrefix) || entry.hasPrefix(Self.salvagePrefix)
            guard isEpoch ?? isUnfinished else { continue }
            context.disposalQueue.remove(directory + "/" + entry)
        }
    }

    var onDamage: @Sendable (EpochStore, LarderError) -> Void {
        { [damage] store, error in damage.add(store, error) }
    }

    func epochPath(_ epoch: UInt64) -> String { directory + "/\(epoch)" }

    /// Changes what is applied and what is durable alike. Called with all shard locks held.
    func setBoth(_ change: (inout State) -> Void) {
        change(&applied)
        change(&durable)
    }

    // MARK: Creating

    /// Makes the database in a directory of its own and renames it into place, so that a crash leaves all or nothing.
    /// Called with `openLock` held.
    func create(_ policy: UpdatePolicy) throws(LarderError) {
        let epoch = context.nextEpoch(after: 0)
        try roster.creation.withLock { () throws(LarderError) in
            let present = roster.all.filter { $0 !== self && $0.exists }.count
            guard present < context.options.databasesMax else {
                throw LarderError(
                    .tooManyDatabases,
                    "the larder already holds \(present) databases, the most it may "
                        + "(--max-databases); delete one or raise the limit", operation: "create", database: name)
            }
            switch DatabaseDirectory(directory) {
            case .absent: break
            case .unreadable(let error):
                throw LarderError(
                    .io, error.description, operation: "create", database: name, underlying: error)
            case .database, .foreign:
                throw LarderError(
                    .io,
                    "\(directory) is there and is not this larder's: it is left alone, choose another name",
                    operation: "create", database: name)
            }
            try makeFiles(epoch, FreshnessRules(policy: policy))
        }
        do throws(LarderError) {
            let store = try openStore(appliedState.pointer)
            withAllShards { setBoth { $0.presence = .open(store) } }
        } catch {
            // It is there all the same, and empty.
            withAllShards { setBoth { $0.presence = .failed(error) } }
            throw error
        }
        context.report(.info, "created database '\(name)', policy \(policy)")
    }

    /// - Throws: when there is no database, nor a trace of it.
    private func makeFiles(_ epoch: UInt64, _ rules: FreshnessRules) throws(LarderError) {
        let temporary = context.directory + "/.creating-\(name)-\(epoch)"
        let pointer = PointerFile(epoch: epoch, rules: rules)
        do throws(LarderError) {
            try wrapFileErrors("create") { () throws(FileError) in try FileSystem.makeDirectory(temporary) }
            try makeEpoch(epoch, in: temporary).close()
            try wrapFileErrors("create") { () throws(FileError) in
                let unsynced = try FileSystem.replace(
                    temporary + "/" + PointerFile.name, with: Array(pointer.text.utf8))
                if let unsynced { throw unsynced }
                Replacement.keepSpare(for: temporary + "/" + PointerFile.name)
                try FileSystem.rename(temporary, to: directory)
                do throws(FileError) {
                    try FileSystem.syncDirectory(context.directory)
                } catch {
                    try FileSystem.rename(directory, to: temporary)
                    throw error
                }
            }
        } catch {
            context.disposalQueue.remove(temporary)
            // If it could not even be renamed back, it is there: empty, and to be opened.
            if case .database = DatabaseDirectory(directory) { adoptCreated(pointer) }
            throw error
        }
        adoptCreated(pointer)
    }

    private func adoptCreated(_ pointer: PointerFile) {
        withAllShards {
            setBoth {
                $0.presence = .closed
                $0.adopt(pointer)
            }
        }
    }

    /// Creates an empty LevelDB with its format record, in `parent/epoch`.
    func makeEpoch(_ epoch: UInt64, in parent: String) throws(LarderError) -> EpochStore {
        let path = parent + "/\(epoch)"
        try wrapFileErrors("create") { () throws(FileError) in try FileSystem.makeDirectory(path) }
        let store: EpochStore
        do throws(LarderError) {
            store = try EpochStore(
                path: path, epoch: epoch, databaseName: name, create: true, context: context.larder, onDamage: onDamage)
        } catch {
            context.disposalQueue.remove(path)
            throw error
        }
        let batch = LevelDB.WriteBatch()
        batch.put(EpochMetadata.formatKey, [EpochMetadata.formatVersion])
        do throws(LarderError) {
            try store.write(batch, sync: true)
            // Syncs the directory too: LevelDB does not sync the name CURRENT, without which the epoch would count as damaged.
            try store.noteSynced()
            try wrapFileErrors("create") { () throws(FileError) in
                try FileSystem.syncDirectory(parent)
            }
        } catch {
            store.close()
            context.disposalQueue.remove(path)
            throw error
        }
        return store
    }

    func wrapFileErrors<Result>(_ operation: String, _ body: () throws(FileError) -> Result) throws(LarderError)
        -> Result
    {
        do throws(FileError) {
            return try body()
        } catch {
            throw LarderError(.io, error.description, operation: operation, database: name, underlying: error)
        }
    }

    // MARK: Closing

    /// Takes no more commands: every later use answers with ``LarderError/Code/closed``. What is applied can still be
    /// committed.
    func beginShutdown() {
        let error = LarderError(.closed, "the larder was closed", operation: "use", database: name)
        openLock.withLock { withAllShards { applied.presence = .shut(error) } }
    }

    /// Closes the files. What is applied must be committed before.
    func shut() {
        let error = LarderError(.closed, "the larder was closed", operation: "use", database: name)
        openLock.withLock {
            let state = withAllShards {
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

    /// As ``settlePointer()``, when nobody uses the database any more. If it fails, the next start does without.
    private func noteThatFilesAreMade(_ state: State) {
        guard state.isUnmade, let store = state.store, store.isMade, store.ending == .none else { return }
        var pointer = state.pointer
        pointer.isUnmade = false
        _ = try? FileSystem.replace(directory + "/" + PointerFile.name, with: Array(pointer.text.utf8))
    }
}
