import LarderLevelDB
import LarderPlatform

/// Opening and closing a database's files.
extension Database {
    /// Opens the files, or reopens them after a failed write. If there are none and `forWriting` is true, creates them.
    /// May block on the disk. Does nothing if the database is ready.
    /// - Parameter policy: for a database that is created. nil means the policy that the database had before it lost
    ///   its files, or else the larder's default.
    package func prepare(forWriting: Bool, policy: DatabasePolicy? = nil) throws(LarderError) {
        try ForkGuard.check("open")
        try life.openLock.withLock { () throws(LarderError) in
            try DatabaseOpening(database: self).prepare(forWriting: forWriting, policy)
        }
    }

    /// Opens the files, unless another thread holds `openLock`. For the checkpoint, which must not wait for a thread
    /// that may itself wait for the checkpoint.
    /// - Returns: false if another thread holds the lock.
    func prepareUnlessBusy() throws(LarderError) -> Bool {
        guard life.openLock.tryLock() else { return false }
        defer { life.openLock.unlock() }
        try DatabaseOpening(database: self, isInTurn: true).prepare(forWriting: false, nil)
        return true
    }

    /// If POINTER could not be read before, takes over its contents now: the policy, the limit, and the epochs
    /// (LevelDBs) whose operations in the journal are valid.
    func adoptIfUnknown(_ pointer: PointerFile) {
        guard durableState.isEpochUnknown else { return }
        shards.withAllLocked {
            setBoth { $0.adopt(pointer) }
            resolve()
        }
    }

    /// Takes over the contents of POINTER before the files are opened. So all callers see the policy, and it is known
    /// which operations of the journal are valid. While POINTER cannot be read, the database keeps the journal's
    /// operations; opening reports the cause. Called before other threads can use the database.
    func adoptPointer() {
        let pointer = try? files.readPointer()
        if let pointer {
            context.noteEpoch(pointer.epoch)
            files.syncWhatWasRead()
        }
        set { if let pointer { $0.adopt(pointer) } else { $0.isEpochUnknown = true } }
        atStart = (applied.rules.settings, applied.diskLimit)
    }

    /// Makes the same change to the applied and to the durable state.
    func set(_ change: (inout DatabaseState) -> Void) { shards.withAllLocked { setBoth(change) } }

    /// Makes the same change to the applied and to the durable state. Called with all shard locks held.
    func setBoth(_ change: (inout DatabaseState) -> Void) {
        change(&applied)
        change(&durable)
        indexes.follow()
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

    /// Like ``recordFilesInPointer()``, for a larder that is being closed. Failures are ignored, because the next start
    /// can do without this.
    private func noteThatFilesAreMade(_ state: DatabaseState) {
        guard state.isUnmade, let store = state.store, store.isMade, store.ending == .none else { return }
        var pointer = state.pointer
        pointer.isUnmade = false
        _ = try? files.replacePointer(by: pointer)
    }
}
