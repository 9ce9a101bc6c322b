/// All that is changed for a whole database at once: which files there are, by which rules entries are judged, and what of the
/// journal counts. A value; its database guards it.
struct DatabaseState {
    /// Whether there are files, and whether they are open.
    ///
    /// Copied by every command. The errors are boxed, so that a copy is one reference and not all their texts.
    enum Presence {
        /// No files. The first write creates them.
        case absent
        /// Files that were not opened yet.
        case closed
        case open(EpochStore)
        /// Files that could not be opened; the next use tries again.
        indirect case failed(LarderError)
        /// Deleted. This object stays so; the name may be used again through a new one.
        case deleted
        /// The larder was closed.
        indirect case shut(LarderError)
    }

    var presence: Presence
    var rules: FreshnessRules
    var generation: UInt32 = 0
    /// Whether governed entries may lack their key in the expiry index. See ``ExpiryIndex``.
    var isUnindexed = false
    /// How often the policy was changed since the files were opened.
    var policyChanges = 0
    /// The epoch that entries belong to; 0 where there is none, or nobody knows.
    var epoch: UInt64 = 0
    /// Operations of the journal count that name an epoch from this one to ``epoch``.
    var journalFrom: UInt64 = 0
    /// Whether there are files, and POINTER, which names the epoch, cannot be read. What the journal has of the database
    /// is kept until it can.
    var isEpochUnknown = false
    /// Whether POINTER says that the epoch's directory need not be there.
    var isUnmade = false
    /// The commit unit that made it so.
    var sequence: UInt64 = 0

    // MARK: Changes

    /// Takes over what POINTER says.
    mutating func adopt(_ pointer: PointerFile) {
        rules = pointer.rules
        epoch = pointer.epoch
        journalFrom = pointer.journalFrom
        isEpochUnknown = false
        isUnmade = pointer.isUnmade
        generation = pointer.generation
        isUnindexed = pointer.isUnindexed
    }

    /// As of files without entries, whose epoch need not be there.
    mutating func startEmpty(_ epoch: UInt64, _ rules: FreshnessRules) {
        adopt(PointerFile(epoch: epoch, rules: rules, isUnmade: true))
    }

    /// As of no files.
    mutating func endFiles(leaving presence: Presence) {
        self.presence = presence
        (epoch, journalFrom, isEpochUnknown, isUnmade) = (0, 0, false, false)
    }

    // MARK: Questions

    var store: EpochStore? {
        if case .open(let store) = presence { return store }
        return nil
    }

    /// What POINTER has to say.
    var pointer: PointerFile {
        PointerFile(
            epoch: epoch, rules: rules, generation: generation, isUnindexed: isUnindexed, journalFrom: journalFrom,
            isUnmade: isUnmade)
    }

    /// Whether operations of the journal count that name an epoch.
    func counts(_ epoch: UInt64) -> Bool { self.epoch != 0 && epoch >= journalFrom && epoch <= self.epoch }

    /// Whether the database has files.
    var exists: Bool {
        switch presence {
        case .absent, .deleted, .shut: false
        case .closed, .open, .failed: true
        }
    }

    /// Whether there are no files, and nobody has deleted the database.
    var isAbsent: Bool { if case .absent = presence { true } else { false } }

    /// Whether there are files that were not opened, or could not be.
    var isUnopened: Bool {
        switch presence {
        case .closed, .failed: true
        case .open, .absent, .deleted, .shut: false
        }
    }

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
