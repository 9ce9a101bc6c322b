import LarderLevelDB
import LarderPlatform
import Synchronization

/// The creation of a store's files, the replacement of the store by a new epoch, and its end.
extension EpochStore {
    /// The maximum number of bytes that LevelDB writes when it opens its files, excluding tables that it makes from
    /// logs.
    static let openingBytes = 256 << 10

    /// The prefix of directories in which the files of an epoch are created.
    static let makingPrefix = ".making-"

    /// Creates the files in a temporary directory, and renames that directory into place.
    func makeFiles(in temporary: String) throws {
        try FileSystem.removeTree(temporary)
        do {
            try FileSystem.makeDirectory(temporary)
            let maker = try EpochStore(
                path: temporary, epoch: epoch, databaseName: databaseName, create: true, context: context,
                onDamage: { _, _ in })
            defer { maker.close() }
            let batch = LarderLevelDB.WriteBatch()
            batch.put(EpochMetadata.formatKey, [EpochMetadata.formatVersion])
            try maker.write(batch, sync: true)
            try maker.noteSynced()
            maker.close()
            try FileSystem.rename(temporary, to: path)
        } catch {
            try? FileSystem.removeTree(temporary)
            throw error
        }
    }

    // MARK: Replacement by a new epoch

    /// Whether the store rejects writes, because a salvage is replacing it by a new epoch. Entries that LevelDB lacks
    /// stay in the journal until the new epoch is in use.
    var isFrozen: Bool { frozen.load(ordering: .acquiring) }

    /// Called by a thread that has the checkpointer's turn, with `indexLock` held, so that no checkpoint or sweep is
    /// running.
    func setFrozen(_ isFrozen: Bool) { frozen.store(isFrozen, ordering: .releasing) }

    /// The last commit unit that the journal must contain, if it was recorded since the store was frozen; otherwise 0.
    var journalNeededWhileFrozen: UInt64 { neededWhileFrozen.load(ordering: .acquiring) }

    /// Records the last commit unit that the journal must contain, like ``note(journalNeeded:)``, but in memory:
    /// nothing may be written to a frozen store.
    func noteWhileFrozen(journalNeeded sequence: UInt64) {
        neededWhileFrozen.store(max(sequence, journalNeededWhileFrozen), ordering: .releasing)
    }

    // MARK: The end

    /// Why a store is no longer the current store of its database.
    enum Ending: UInt8 { case none, purged, deleted, setAside, closed, salvaged }

    var ending: Ending { Ending(rawValue: endingValue.load(ordering: .acquiring)) ?? .closed }

    /// The error for snapshots and cursors of a store that is no longer current; nil while the store is current.
    func endingError(_ operation: String) -> LarderError? { endingError(ending, operation) }

    private func endingError(_ ending: Ending, _ operation: String) -> LarderError? {
        let (code, message): (LarderError.Code, String)
        switch ending {
        case .none: return nil
        case .purged: (code, message) = (.purged, "the database was purged during the operation")
        case .deleted: (code, message) = (.deleted, "the database was deleted during the operation")
        case .setAside: (code, message) = (.deleted, "the database was damaged and set aside during the operation")
        case .salvaged: (code, message) = (.deleted, "the database was damaged and salvaged during the operation")
        case .closed: (code, message) = (.closed, "the larder was closed")
        }
        return LarderError(code, message, operation: operation, database: databaseName)
    }

    /// Announces that the files are about to be moved away. Operations that fail because of this then report `reason`.
    /// A call of ``end(_:)`` or ``cancelEnd()`` must follow.
    func prepareEnd(_ reason: Ending) { nextEnding.store(reason.rawValue, ordering: .releasing) }

    func cancelEnd() { nextEnding.store(Ending.none.rawValue, ordering: .releasing) }

    /// Marks the store as no longer current. If it is called again, the first reason stays.
    func end(_ reason: Ending) {
        _ = endingValue.compareExchange(
            expected: Ending.none.rawValue, desired: reason.rawValue, ordering: .acquiringAndReleasing)
    }

    /// Runs `body`. If `body` throws `damaged` or `io` while the store ends or after its end, throws the reason of the
    /// end instead, because the files may have been moved.
    func whileItLasts<Result>(
        _ operation: String, _ body: () throws(LarderError) -> Result
    ) throws(LarderError) -> Result {
        do throws(LarderError) {
            return try body()
        } catch {
            guard error.code == .damaged || error.code == .io else { throw error }
            let next = Ending(rawValue: nextEnding.load(ordering: .acquiring)) ?? .none
            throw endingError(ending == .none ? next : ending, operation) ?? error
        }
    }
}

extension DisposalQueue {
    /// Adds a store whose files are to be closed and removed.
    func add(_ store: EpochStore) { add(store.path) { store.close() } }
}

/// The keys and values of an epoch's metadata records in LevelDB. **On disk: do not change.**
enum EpochMetadata {
    static let formatKey: [UInt8] = [KeyKind.metadata] + Array("format".utf8)
    static let formatVersion: UInt8 = 1
    /// The key of the record that contains the last commit unit that the journal must contain (8 bytes, big-endian). It
    /// is used only if the journal is damaged, to detect that a needed part is lost.
    static let journalKey: [UInt8] = [KeyKind.metadata] + Array("journal".utf8)

    static func journalValue(_ sequence: UInt64) -> [UInt8] {
        var bytes: [UInt8] = []
        BigEndian.append(sequence, to: &bytes)
        return bytes
    }
}
