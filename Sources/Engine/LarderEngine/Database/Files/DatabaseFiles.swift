import LarderLevelDB
import LarderPlatform

/// A database's directory: POINTER, which names the current epoch (LevelDB), and a directory for each epoch. This type
/// creates, reads, replaces and removes the files. It does not access the entries in memory or the current state.
///
/// Callers that change files hold the database's `openLock`. Only the commit pipeline renames files without it. These
/// files were staged while the lock was held.
struct DatabaseFiles: Sendable {
    let name: String
    let directory: String
    private let context: LarderContext
    private let damage: DamageReports

    /// The prefix of a directory that a salvage is filling.
    static let salvagePrefix = ".salvage-"

    init(name: String, context: LarderContext, damage: DamageReports) {
        self.name = name
        self.context = context
        self.damage = damage
        directory = context.directory + "/" + name
    }

    var tags: TagsFile { TagsFile(directory: directory) }
    var pointerPath: String { directory + "/" + PointerFile.name }
    func epochPath(_ epoch: UInt64) -> String { directory + "/\(epoch)" }
    var byteCount: Int { FileSystem.size(directory) }

    var found: DatabaseDirectory { DatabaseDirectory(directory) }

    // MARK: POINTER

    func readPointer() throws(LarderError) -> PointerFile {
        do {
            if FileSystem.existsButIsNotRegularFile(pointerPath) {
                throw LarderError(
                    .io,
                    "\(pointerPath) is not a file: move it away and restore \(PointerFile.name), or delete the "
                        + "database. Nothing was changed, and the journal is kept",
                    operation: "open", database: name)
            }
            guard let bytes = try FileSystem.read(pointerPath) else {
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

    /// Replaces POINTER directly, without the commit pipeline. Called while no other thread can replace it.
    /// - Returns: nil, or the reason why a machine failure may restore the old POINTER.
    func replacePointer(by pointer: PointerFile) throws(FileError) -> FileError? {
        try FileSystem.replace(pointerPath, with: Array(pointer.text.utf8))
    }

    /// Writes a new POINTER next to the old one.
    /// - Parameter store: the open store, if any. Its LOG is emptied if the disk is full.
    func stage(_ pointer: PointerFile, _ operation: String, store: EpochStore?) throws(LarderError) -> Replacement {
        let bytes = Array(pointer.text.utf8)
        do throws(FileError) {
            return try Replacement(of: pointerPath, with: bytes, keepsSpare: true)
        } catch {
            guard error.isFullDisk, let store else { throw refused(operation, error) }
            // The spare file, which reserves space for a new POINTER on a full disk, is used up. So free the space of
            // LevelDB's LOG files, which are not needed.
            FileSystem.empty(store.path + "/LOG")
            FileSystem.empty(store.path + "/LOG.old")
        }
        do throws(FileError) {
            return try Replacement(of: pointerPath, with: bytes, keepsSpare: true)
        } catch {
            throw refused(operation, error)
        }
    }

    private func refused(_ operation: String, _ error: FileError) -> LarderError {
        LarderError(
            .io, "nothing was changed: \(error.description)", operation: operation, database: name, underlying: error)
    }

    func putInPlace(_ replacement: Replacement) throws(LarderError) {
        let unsynced = try wrapErrors("write \(PointerFile.name)") { () throws(FileError) in
            try replacement.putInPlace()
        }
        if let unsynced { reportUnsynced(unsynced) }
    }

    /// The previous process may have terminated between the rename of POINTER and the sync of its directory. A policy
    /// that was visible to readers must survive a machine failure, so the directory is synced now.
    func syncWhatWasRead() {
        do throws(FileError) { try FileSystem.syncDirectory(directory) } catch { reportUnsynced(error) }
    }

    private func reportUnsynced(_ error: FileError) {
        context.report(
            .error, "\(error); a machine failure now may undo a change of database '\(name)'", database: name)
    }

    // MARK: Epochs

    func open(_ pointer: PointerFile) throws(LarderError) -> EpochStore {
        let path = epochPath(pointer.epoch)
        try renewCurrent(path)
        // In a directory without CURRENT, LevelDB would start an empty database if `create_if_missing` were set. The
        // option is never set here, and such a directory counts as damaged.
        switch LarderLevelDB.Database.containsDatabaseFiles(path: path) {
        case .database: break
        case .absentOrEmpty:
            guard pointer.isUnmade else { throw damaged("its files are missing from \(path)") }
            return emptyStore(pointer.epoch)
        case .damaged: throw damaged("CURRENT is missing or cut short in \(path)")
        }
        let store = try open(epoch: pointer.epoch)
        do throws(LarderError) {
            try checkFormat(store)
        } catch {
            store.close()
            throw error
        }
        return store
    }

    /// Completes LevelDB's change to a new manifest after a machine failure. No data is lost.
    private func renewCurrent(_ path: String) throws(LarderError) {
        do {
            guard let manifest = try EpochInspection.renewCurrent(path) else { return }
            context.report(
                .warning,
                "database '\(name)': repaired CURRENT, which did not name LevelDB's newest manifest (a power failure can "
                    + "cause that): it now names \(manifest); no data was lost", database: name)
        } catch {
            throw LarderError(.io, "\(error)", operation: "open", database: name, underlying: error)
        }
    }

    private func checkFormat(_ store: EpochStore) throws(LarderError) {
        let value = try store.access("open") { (database) throws(LevelDBError) in
            try database.get(EpochMetadata.formatKey)
        }
        guard let value, let version = value.first, version > 0 else { throw damaged("it has no format record") }
        guard version <= EpochMetadata.formatVersion else { throw newer("its entries have format \(version)") }
    }

    /// Opens the files of an existing epoch.
    func open(epoch: UInt64) throws(LarderError) -> EpochStore {
        try EpochStore(
            path: epochPath(epoch), epoch: epoch, databaseName: name, create: false, context: context,
            onDamage: onDamage)
    }

    /// Returns a store for an epoch that begins empty. The first checkpoint that writes entries to the store creates
    /// the files.
    func emptyStore(_ epoch: UInt64) -> EpochStore {
        EpochStore(
            unmadeAt: epochPath(epoch), epoch: epoch, databaseName: name, context: context, onDamage: onDamage)
    }

    /// Creates an empty LevelDB with its format record, in `parent/epoch`.
    func makeEpoch(_ epoch: UInt64, in parent: String) throws(LarderError) -> EpochStore {
        let path = parent + "/\(epoch)"
        try wrapErrors("create") { () throws(FileError) in try FileSystem.makeDirectory(path) }
        let store: EpochStore
        do throws(LarderError) {
            store = try EpochStore(
                path: path, epoch: epoch, databaseName: name, create: true, context: context, onDamage: onDamage)
        } catch {
            context.disposalQueue.remove(path)
            throw error
        }
        let batch = LarderLevelDB.WriteBatch()
        batch.put(EpochMetadata.formatKey, [EpochMetadata.formatVersion])
        do throws(LarderError) {
            try store.write(batch, sync: true)
            // Also sync the directory, because LevelDB does not sync the name of CURRENT. If a machine failure lost
            // that name, the epoch would count as damaged.
            try store.noteSynced()
            try wrapErrors("create") { () throws(FileError) in try FileSystem.syncDirectory(parent) }
        } catch {
            store.close()
            context.disposalQueue.remove(path)
            throw error
        }
        return store
    }

    private var onDamage: @Sendable (EpochStore, LarderError) -> Void {
        { [damage] store, error in damage.add(store, error) }
    }

    /// The newest epoch with files; 0 if there is none.
    var newestEpoch: UInt64 {
        let names = (try? FileSystem.list(directory)) ?? []
        return names.compactMap { UInt64($0) }.filter { $0 <= Sequences.epochMax }.max() ?? 0
    }

    // MARK: The whole directory

    /// Creates the files in a directory of their own and renames it into place, so that a crash leaves all or nothing.
    /// - Throws: if the files cannot be created. Also if they were created, but it is uncertain whether their name is
    ///   on the disk. ``found`` distinguishes these cases.
    func make(_ pointer: PointerFile) throws(LarderError) {
        let temporary = context.directory + "/.creating-\(name)-\(pointer.epoch)"
        do throws(LarderError) {
            try wrapErrors("create") { () throws(FileError) in try FileSystem.makeDirectory(temporary) }
            try makeEpoch(pointer.epoch, in: temporary).close()
            try wrapErrors("create") { () throws(FileError) in
                let unsynced = try FileSystem.replace(
                    temporary + "/" + PointerFile.name, with: Array(pointer.text.utf8))
                if let unsynced { throw unsynced }
                Replacement.keepSpare(for: temporary + "/" + PointerFile.name)
                try FileSystem.rename(temporary, to: directory)
                do throws(FileError) {
                    try FileSystem.syncDirectory(context.directory)
                } catch {
                    do throws(FileError) {
                        try FileSystem.rename(directory, to: temporary)
                    } catch {
                        // The files stay in place, so the creation has succeeded: report the risk, and do not throw.
                        context.report(
                            .error, "\(error); a machine failure now may undo the creation of database '\(name)'",
                            database: name)
                        return
                    }
                    throw error
                }
            }
        } catch {
            context.disposalQueue.remove(temporary)
            throw error
        }
    }

    /// - Throws: unless the directory is absent or empty.
    func requireAbsent() throws(LarderError) {
        switch found {
        case .absent: break
        case .unreadable(let error):
            throw LarderError(.io, error.description, operation: "create", database: name, underlying: error)
        case .database, .foreign:
            throw LarderError(
                .io, "\(directory) exists and does not belong to this larder; choose another name",
                operation: "create", database: name)
        }
    }

    /// Moves the files away durably, by a rename, which needs no space.
    func move(to place: String) throws(LarderError) {
        try wrapErrors("delete") { () throws(FileError) in try FileSystem.rename(directory, to: place) }
        do throws(FileError) {
            try FileSystem.syncDirectory(context.directory)
        } catch {
            context.report(
                .error, "\(error); after a machine failure now, the deleted database '\(name)' may reappear",
                database: name)
        }
    }

    /// Removes the epochs that a crash left behind.
    func removeOtherEpochs(than current: UInt64) {
        removeEntries { entry in
            UInt64(entry).map { $0 != current }
                ?? (entry.hasPrefix(EpochStore.makingPrefix) || entry.hasPrefix(Self.salvagePrefix))
        }
    }

    /// Removes unfinished salvages, because the next one may need their space.
    func removeUnfinishedSalvages() { removeEntries { $0.hasPrefix(Self.salvagePrefix) } }

    private func removeEntries(where isLeft: (String) -> Bool) {
        for entry in (try? FileSystem.list(directory)) ?? [] where isLeft(entry) {
            context.disposalQueue.remove(directory + "/" + entry)
        }
    }

    // MARK: Errors

    func wrapErrors<Result>(_ operation: String, _ body: () throws(FileError) -> Result) throws(LarderError) -> Result {
        try LarderError.wrapping(operation, database: name, body)
    }

    func damaged(_ why: String) -> LarderError {
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
}
