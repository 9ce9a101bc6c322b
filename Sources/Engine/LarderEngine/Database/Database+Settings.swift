import LarderPlatform

/// The settings of a database: its policy, and its disk limit.
extension Database {
    /// Changes the policy and waits until the change is on the disk. The policy applies immediately to the entries that
    /// have no rule of their own. Entries that had expired under the old policy stay expired. Creates the database if
    /// it does not exist. If this function throws, the policy is unchanged. May block.
    /// - Parameters:
    ///   - grace: in milliseconds, see ``DatabasePolicy/grace``; nil keeps the present one.
    ///   - jitter: in percent, see ``DatabasePolicy/jitter``; nil keeps the present one.
    package func setPolicy(_ policy: UpdatePolicy, grace: Int64? = nil, jitter: Int? = nil) throws(LarderError) {
        try ForkGuard.check("policy")
        while true {
            let present = rules
            let policy = DatabasePolicy(policy, grace: grace ?? present.grace, jitter: jitter ?? present.jitter)
            if !isReady(forWriting: true), try isMade(with: policy) { return }
            let isDone = try changeIfOpen("policy") { (state) throws(LarderError) in
                if policy != state.rules.settings { try pipeline.wait(for: try changePolicy(policy, now: now())) }
            }
            if isDone { return }
        }
    }

    /// Runs a change of the whole database, with `openLock` held.
    /// - Parameter needsWrites: whether the change is refused while the database accepts no writes.
    /// - Returns: false, without an effect, if the database's files were removed or closed in the meantime. The caller
    ///   then prepares the database and tries again.
    func changeIfOpen(
        _ operation: String, needsWrites: Bool = true, _ body: (DatabaseState) throws(LarderError) -> Void
    ) throws(LarderError) -> Bool {
        try life.openLock.withLock { () throws(LarderError) in
            let state = appliedState
            switch state.presence {
            case .absent, .closed: return false
            case .open where !needsWrites: break
            case .open, .failed, .deleted, .shut: _ = try writableStore(state.presence, operation)
            }
            try body(state)
            return true
        }
    }

    /// Opens the files, or creates them with a policy.
    /// - Returns: true if the files were created with the policy, but could not be opened. The policy is then on the
    ///   disk, and the next use of the database reports the cause.
    private func isMade(with policy: DatabasePolicy) throws(LarderError) -> Bool {
        let isNew = !exists
        do throws(LarderError) {
            try prepare(forWriting: true, policy: policy)
            return false
        } catch {
            // The state `failed` means that the new policy is certainly on the disk. If a machine failure may still
            // lose the new database's directory, the state is `closed`: then throw the error.
            guard isNew, case .failed = appliedState.presence, rules.settings == policy else { throw error }
            context.report(
                .warning, "database '\(name)' has the policy \(policy.policy), but cannot be opened: \(error)",
                database: name)
            return true
        }
    }

    /// Applies another policy. `openLock` must be held until the change is durable or undone.
    /// - Returns: the ticket to wait for.
    package func changePolicy(_ policy: DatabasePolicy, now: Int64) throws(LarderError) -> CommitTicket {
        try applyPointer("policy") { state in
            if !ExpiryIndex.indexes(state.rules.policy) { state.isUnindexed = true }
            state.rules = state.rules.changed(to: policy, now: now)
            state.policyChanges += 1
        } applying: {
            forgetEvicted()
        }
    }

    /// Forgets the evicted keys, because the recorded deadlines of their entries are outdated. Called with all shard
    /// locks held.
    func forgetEvicted() { for shard in shards.all { shard.evictedKeys.removeAll() } }

    /// Records that the expiry index is complete: it has the key of every entry of `store` that follows the policy.
    /// Waits until the record is on the disk. Does nothing if the policy was changed since
    /// ``DatabaseState/policyChanges`` had the value `policyChanges`.
    func finishIndexing(_ store: EpochStore, policyChanges: Int) throws(LarderError) {
        try life.openLock.withLock { () throws(LarderError) in
            let state = appliedState
            guard state.store === store, state.policyChanges == policyChanges, state.isUnindexed else { return }
            try replacePointer("index") { $0.isUnindexed = false }
        }
    }

    // MARK: The disk limit

    /// The limit for the database's files in bytes; 0 if it has no limit of its own.
    package var diskLimit: Int { appliedState.diskLimit }

    /// The disk space of the database's files in bytes, without the journal, which all databases share.
    package var diskBytes: Int { FileSystem.space(files.directory) }

    /// Changes the limit and waits until the change is on the disk. Excess entries are evicted in the background. May
    /// block.
    /// - Parameter bytes: at least ``DiskThresholds/databaseBytesMin``; 0 for no limit of its own.
    /// - Throws: ``LarderError/Code/noSuchDatabase`` if there is no database with this name.
    package func setDiskLimit(_ bytes: Int) throws(LarderError) {
        try ForkGuard.check("limit")
        guard bytes == 0 || bytes >= DiskThresholds.databaseBytesMin else {
            throw LarderError(
                .invalidArgument,
                "the limit is \(bytes) bytes; it must be 0 (none) or at least \(DiskThresholds.databaseBytesMin), "
                    + "because LevelDB's own files take space too", operation: "limit", database: name)
        }
        while true {
            guard !appliedState.isAbsent else {
                throw LarderError(
                    .noSuchDatabase, "there is no database '\(name)'", operation: "limit", database: name)
            }
            if !isReady(forWriting: false) { try prepare(forWriting: false) }
            // Works even while writes are refused, because the limit may be the reason for the refusal.
            let isDone = try changeIfOpen("limit", needsWrites: false) { (state) throws(LarderError) in
                if state.diskLimit != bytes { try replacePointer("limit") { $0.diskLimit = bytes } }
            }
            if isDone { break }
        }
        context.larder.disk.changed()
    }

    /// Throws if a commit unit is too large for the disk limits even after everything else is evicted.
    /// - Parameters:
    ///   - bytes: the size of the unit's keys and records.
    ///   - limit: the limit of the database, ``DatabaseState/diskLimit``.
    func checkFits(_ bytes: Int, limit: Int) throws(LarderError) {
        let most = context.larder.disk.unitBytesMax(databaseLimit: limit)
        guard bytes > most else { return }
        throw LarderError(
            .invalidArgument,
            "a write of \(bytes) bytes is too large: with the disk limit of \(2 * most) bytes, a write can have "
                + "at most \(most); raise the limit (--max-disk, CacheOptions.diskBytesMax, larderctl limit)",
            operation: "update", database: name)
    }
}
