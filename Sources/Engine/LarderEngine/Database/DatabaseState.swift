/// The state that changes for a whole database in one step: its files, the rules of freshness, and the epochs
/// (LevelDBs) whose operations in the journal are valid. Not thread-safe: its database guards it.
struct DatabaseState {
    /// Whether there are files, and whether they are open.
    ///
    /// Copied by every command. The errors are boxed, so that a copy is one reference and not all their texts.
    enum Presence {
        /// No files. The first write creates them.
        case absent
        /// Files that are not open yet.
        case closed
        case open(EpochStore)
        /// Files that could not be opened; the next use tries again.
        indirect case failed(LarderError)
        /// Deleted permanently. A new ``Database`` object may use the name again.
        case deleted
        /// The larder was closed.
        indirect case shut(LarderError)
    }

    var presence: Presence
    var rules: FreshnessRules
    var generation: UInt32 = 0
    /// Whether governed entries (those that follow the policy) may lack their key in the ``ExpiryIndex``.
    var isUnindexed = false
    /// How often the policy was changed since the files were opened.
    var policyChanges = 0
    /// The epoch (number of the LevelDB) of the entries; 0 if there is none, or it is unknown.
    var epoch: UInt64 = 0
    /// The first epoch whose operations in the journal are valid; the last one is ``epoch``.
    var journalFrom: UInt64 = 0
    /// Whether there are files, but POINTER (which names the epoch) cannot be read. Until POINTER can be read, the
    /// database keeps its operations in the journal.
    var isEpochUnknown = false
    /// Whether the epoch's directory may be absent according to POINTER.
    var isUnmade = false
    /// Whether the ledger must have purges of the database's tags, according to POINTER.
    var hasTagPurges = false
    /// The limit for the files in bytes; 0 if they have no limit of their own. Kept when the files are set aside.
    var diskLimit = 0
    /// The indexes. Kept when the files are set aside.
    var indexes: [DatabaseIndex] = []
    /// The commit unit of the last change of the whole database; 0 if the change is durable.
    var sequence: UInt64 = 0

    // MARK: Changes

    /// Takes over the contents of POINTER.
    mutating func adopt(_ pointer: PointerFile) {
        // Keep the purges, because POINTER does not contain them.
        let purges = rules.purges
        rules = pointer.rules
        rules.purges = purges
        epoch = pointer.epoch
        journalFrom = pointer.journalFrom
        isEpochUnknown = false
        isUnmade = pointer.isUnmade
        hasTagPurges = pointer.hasTagPurges
        diskLimit = pointer.diskLimit
        indexes = pointer.indexes
        generation = pointer.generation
        isUnindexed = pointer.isUnindexed
    }

    /// Sets this state to that of an empty epoch. The epoch's directory may be absent.
    mutating func startEmpty(_ epoch: UInt64, _ rules: FreshnessRules) {
        adopt(
            PointerFile(
                epoch: epoch, rules: rules, isUnmade: true, hasTagPurges: hasTagPurges, diskLimit: diskLimit,
                indexes: indexes))
    }

    /// Sets this state to that of a database without files.
    mutating func endFiles(leaving presence: Presence) {
        self.presence = presence
        (epoch, journalFrom, isEpochUnknown, isUnmade, hasTagPurges) = (0, 0, false, false, false)
    }

    // MARK: Questions

    var store: EpochStore? {
        if case .open(let store) = presence { return store }
        return nil
    }

    var pointer: PointerFile {
        PointerFile(
            epoch: epoch, rules: rules, generation: generation, isUnindexed: isUnindexed, journalFrom: journalFrom,
            isUnmade: isUnmade, hasTagPurges: hasTagPurges, diskLimit: diskLimit, indexes: indexes)
    }

    /// Whether the journal's operations of an epoch are valid.
    func counts(_ epoch: UInt64) -> Bool { self.epoch != 0 && epoch >= journalFrom && epoch <= self.epoch }

    /// Whether the database has files.
    var exists: Bool {
        switch presence {
        case .absent, .deleted, .shut: false
        case .closed, .open, .failed: true
        }
    }

    var isOpen: Bool { if case .open = presence { true } else { false } }

    /// Whether there are no files and the database was not deleted.
    var isAbsent: Bool { if case .absent = presence { true } else { false } }

    /// Whether there are files that are not open yet, or could not be opened.
    var isUnopened: Bool {
        switch presence {
        case .closed, .failed: true
        case .open, .absent, .deleted, .shut: false
        }
    }

    /// Whether there are files that have not been opened.
    var isClosed: Bool { if case .closed = presence { true } else { false } }

    /// Whether there are files that could not be opened.
    var isFailed: Bool { if case .failed = presence { true } else { false } }

    var isShut: Bool { if case .shut = presence { true } else { false } }

    /// See ``Database/isReady(forWriting:)``.
    func isReady(forWriting: Bool) -> Bool {
        switch presence {
        case .open(let store): !(forWriting && store.isSuspended && !store.isFrozen)
        case .absent: !forWriting
        case .closed, .failed: false
        case .deleted, .shut: true
        }
    }

    /// See ``Database/condition``.
    var condition: String {
        switch presence {
        case .absent: "absent"
        case .closed: "closed"
        case .open(let store):
            store.isFrozen || store.knownDamage != nil ? "damaged" : store.isSuspended ? "failed" : "open"
        case .failed(let error): error.code == .damaged ? "damaged" : "failed"
        case .deleted: "deleted"
        case .shut: "closed"
        }
    }
}

extension ChangeStream {
    /// Publishes the difference between two states of a database, except for purges of tags.
    func publish(_ database: any DatabaseIdentity, was: DatabaseState, is new: DatabaseState) {
        if was.store !== new.store {
            // The new epoch has taken over the entries if the journal's operations of the previous epoch are still
            // valid.
            if new.store != nil, new.counts(was.epoch) {
                publish(.replaced, of: database)
            } else {
                publish(was.store != nil && new.store != nil ? .purged : .emptied, of: database)
            }
        }
        if case .deleted = new.presence { publish(.deleted, of: database) }
        if was.rules.settings != new.rules.settings || was.rules.deadBefore != new.rules.deadBefore {
            publish(.policyChanged, of: database)
        }
    }
}

/// The journal's operations of a database whose POINTER cannot be read for now. Without POINTER, the current epoch
/// (LevelDB) and the valid operations are unknown. So the last operation for each key of each epoch is kept.
///
/// Not thread-safe: its database guards it.
struct UnresolvedOperations {
    struct Operation {
        /// nil for a removal.
        let record: [UInt8]?
        let sequence: UInt64
    }

    private(set) var epochs: [UInt64: [Key: Operation]] = [:]
    private(set) var byteCount = 0

    var isEmpty: Bool { epochs.isEmpty }

    mutating func add(
        _ epoch: UInt64, _ key: UnsafeRawBufferPointer, _ record: UnsafeRawBufferPointer?, _ sequence: UInt64
    ) {
        let operation = Operation(record: record.map { Array($0) }, sequence: sequence)
        let previous = epochs[epoch, default: [:]].updateValue(operation, forKey: Key(key))
        byteCount += (record?.count ?? 0) - (previous?.record?.count ?? 0)
        if previous == nil { byteCount += key.count + 16 }
    }
}
