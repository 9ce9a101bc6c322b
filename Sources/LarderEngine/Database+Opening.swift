import LevelDB

/// Opening, creating, setting aside and closing: everything that touches the database's directory.
extension Database {
    /// What metadata records say. **On disk: do not change.**
    enum Metadata {
        static let formatKey: [UInt8] = [KeyKind.metadata] + Array("format".utf8)
        static let formatVersion: UInt8 = 1
    }

    /// Opens the files, creates them if it is for writing and there are none, reopens them after a failed write. May
    /// block on the disk. Does nothing when the database is ready.
    /// - Parameter policy: for a database that is created; the larder's default where nil.
    package func prepare(forWriting: Bool, policy: UpdatePolicy? = nil) throws(LarderError) {
        try ForkGuard.check("open")
        try openLock.withLock { () throws(LarderError) in
            switch appliedState.presence {
            case .open(let store): if forWriting { try store.recover() }
            case .absent: if forWriting { try create(policy ?? context.options.defaultPolicy) }
            case .closed, .failed: try openFiles()
            case .deleted: throw deletedError("open")
            case .shut(let error): throw error
            }
        }
    }

    // MARK: Opening

    private func openFiles() throws(LarderError) {
        do throws(LarderError) {
            try openCurrentEpoch()
        } catch {
            guard error.code == .damaged, context.options.onDamage == .setAside else {
                withAllShards { setBoth { $0.presence = .failed(error) } }
                throw error
            }
            context.report(.error, "database '\(name)' is damaged: \(error.message)")
            try setAsideAndStartEmpty()
        }
    }

    func openCurrentEpoch() throws(LarderError) {
        let pointer = try readPointer()
        let path = epochPath(pointer.epoch)
        // LevelDB, told to create, would empty a directory whose CURRENT is missing; so it is never told to here, and
        // such a directory is damage.
        switch LevelDB.Database.containsDatabaseFiles(path: path) {
        case .database: break
        case .absentOrEmpty: throw damaged("its files are gone from \(path)")
        case .damaged: throw damaged("CURRENT is missing or cut short in \(path)")
        }
        let store = try EpochStore(
            path: path, epoch: pointer.epoch, databaseName: name, create: false, context: context,
            onDamage: onDamage)
        do throws(LarderError) {
            try checkFormat(store)
        } catch {
            store.close()
            throw error
        }
        withAllShards {
            setBoth {
                $0.presence = .open(store)
                $0.rules = pointer.rules
                $0.generation = pointer.generation
            }
        }
        removeOtherEpochs(than: pointer.epoch)
        context.report(.info, "opened database '\(name)', policy \(pointer.rules.policy)")
    }

    private func readPointer() throws(LarderError) -> PointerFile {
        do {
            guard let bytes = try FileSystem.read(directory + "/" + PointerFile.name) else {
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
            try database.get(Metadata.formatKey)
        }
        guard let value, let version = value.first else { throw damaged("it has no format record") }
        guard version <= Metadata.formatVersion else { throw newer("its entries have format \(version)") }
    }

    private func damaged(_ why: String) -> LarderError {
        LarderError(
            .damaged, "the database is damaged: \(why). Nothing was changed; set it aside to go on with an empty one",
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
    private func removeOtherEpochs(than current: UInt64) {
        for entry in (try? FileSystem.list(directory)) ?? [] where UInt64(entry) != nil && UInt64(entry) != current {
            try? FileSystem.removeTree(directory + "/" + entry)
        }
    }

    var onDamage: @Sendable (EpochStore, LarderError) -> Void {
        { [damage, weak self] store, error in
            guard let self else { return }
            damage.add(self, store, error)
        }
    }

    func epochPath(_ epoch: UInt64) -> String { directory + "/\(epoch)" }

    /// Changes what is applied and what is durable alike. Called with all shard locks held.
    func setBoth(_ change: (inout State) -> Void) {
        change(&applied)
        change(&durable)
    }

    // MARK: Creating

    /// Makes the database in a directory of its own and renames it into place, so that a crash leaves all or nothing.
    func create(_ policy: UpdatePolicy) throws(LarderError) {
        let present = table.all.filter { $0 !== self && $0.exists }.count
        guard present < context.options.databasesMax else {
            throw LarderError(
                .tooManyDatabases,
                "the larder already holds \(present) databases, the most it may "
                    + "(--max-databases); delete one or raise the limit", operation: "create", database: name)
        }
        let rules = FreshnessRules(policy: policy)
        let epoch = context.nextEpoch(after: 0)
        let temporary = context.directory + "/.creating-\(name)-\(epoch)"
        do throws(LarderError) {
            try wrapFileErrors("create") { () throws(FileError) in try FileSystem.makeDirectory(temporary) }
            let made = try makeEpoch(epoch, in: temporary)
            made.close()
            try wrapFileErrors("create") { () throws(FileError) in
                try FileSystem.replace(
                    temporary + "/" + PointerFile.name, with: Array(PointerFile(epoch: epoch, rules: rules).text.utf8))
                try FileSystem.rename(temporary, to: directory)
                try FileSystem.syncDirectory(context.directory)
            }
        } catch {
            try? FileSystem.removeTree(temporary)
            throw error
        }
        let store = try EpochStore(
            path: epochPath(epoch), epoch: epoch, databaseName: name, create: false, context: context,
            onDamage: onDamage)
        withAllShards {
            setBoth {
                $0.presence = .open(store)
                $0.rules = rules
                $0.generation = 0
            }
        }
        context.report(.info, "created database '\(name)', policy \(policy)")
    }

    /// Creates an empty LevelDB with its format record, in `parent/epoch`.
    func makeEpoch(_ epoch: UInt64, in parent: String) throws(LarderError) -> EpochStore {
        let path = parent + "/\(epoch)"
        try wrapFileErrors("create") { () throws(FileError) in try FileSystem.makeDirectory(path) }
        let store = try EpochStore(
            path: path, epoch: epoch, databaseName: name, create: true, context: context, onDamage: onDamage)
        let batch = LevelDB.WriteBatch()
        batch.put(Metadata.formatKey, [Metadata.formatVersion])
        do throws(LarderError) {
            try store.write(batch, sync: true)
            try wrapFileErrors("create") { () throws(FileError) in try FileSystem.syncDirectory(parent) }
        } catch {
            store.close()
            try? FileSystem.removeTree(path)
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

    /// Closes the files; every later use answers with ``LarderError/Code/closed``. What is applied must be committed
    /// before.
    func closeForGood() {
        openLock.withLock {
            let error = LarderError(.closed, "the larder was closed", operation: "use", database: name)
            let store = withAllShards {
                defer { setBoth { $0.presence = .shut(error) } }
                return applied.store
            }
            store?.close()
        }
    }

    // MARK: Setting damage aside

    /// Sets the database aside if opening it shows damage.
    func setAsideIfDamaged() throws(LarderError) {
        try openLock.withLock { () throws(LarderError) in
            if case .open = appliedState.presence {
                throw LarderError(
                    .invalidArgument, "the database is open and not damaged", operation: "set aside", database: name)
            }
            do throws(LarderError) {
                try openCurrentEpoch()
            } catch {
                guard error.code == .damaged else { throw error }
                try setAsideAndStartEmpty()
                return
            }
            throw LarderError(
                .invalidArgument, "the database is not damaged", operation: "set aside", database: name)
        }
    }

    /// Sets the database aside because of damage that was met in `store`, unless it has another one by now.
    func setAside(_ store: EpochStore) throws(LarderError) {
        try openLock.withLock { () throws(LarderError) in
            guard appliedState.store === store else { return }
            try setAsideAndStartEmpty()
        }
    }

    /// Moves the damaged files to `DAMAGED/` and goes on with an empty database under the same policy. Called with
    /// `openLock` held.
    func setAsideAndStartEmpty() throws(LarderError) {
        let policy = ((try? readPointer()) ?? nil)?.rules.policy ?? appliedState.rules.policy
        let store = withAllShards {
            defer {
                clearOverlay()
                setBoth {
                    $0.presence = .absent
                }
            }
            return applied.store
        }
        store?.end(.setAside)
        store?.close()
        let place = try DamagedFiles.setAside(directory, name: name, context: context)
        context.statistics.setAside.add()
        context.report(.error, "database '\(name)' was damaged and set aside at \(place); an empty one takes its place")
        try create(policy)
    }
}
