/// The policy of a database.
extension Database {
    /// Changes the policy and waits until the change is on the disk. It applies at once to the entries that have no
    /// rule of their own; entries that had expired under the old policy stay expired. Creates the database if it does
    /// not exist. If it throws, the policy is unchanged. May block.
    /// - Parameters:
    ///   - grace: in milliseconds, see ``DatabasePolicy/grace``; nil keeps the present one.
    ///   - jitter: in percent, see ``DatabasePolicy/jitter``; nil keeps the present one.
    package func setPolicy(
        _ policy: UpdatePolicy, grace: Int64? = nil, jitter: Int? = nil
    ) throws(LarderError) {
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
    /// - Returns: false, without an effect, if its files were removed or closed in the meantime. The caller then
    ///   prepares the database and tries again.
    func changeIfOpen(
        _ operation: String, _ body: (DatabaseState) throws(LarderError) -> Void
    ) throws(LarderError) -> Bool {
        try life.openLock.withLock { () throws(LarderError) in
            let state = appliedState
            switch state.presence {
            case .absent, .closed: return false
            case .open, .failed, .deleted, .shut: break
            }
            _ = try writableStore(state.presence, operation)
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
            // If a machine failure may still lose the new database's directory, the state is `closed`, not `failed`,
            // and the error is thrown.
            guard isNew, case .failed = appliedState.presence, rules.settings == policy else { throw error }
            context.report(
                .warning, "database '\(name)' has the policy \(policy.policy), but cannot be opened: \(error)")
            return true
        }
    }

    /// Applies another policy. `openLock` must be held until the change is decided.
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

    /// Records that every governed entry of `store` has its key in the expiry index. Does nothing if the policy was
    /// changed since ``DatabaseState/policyChanges`` had the value `policyChanges`. Waits until the record is on the
    /// disk.
    func finishIndexing(_ store: EpochStore, policyChanges: Int) throws(LarderError) {
        try life.openLock.withLock { () throws(LarderError) in
            let state = appliedState
            guard state.store === store, state.policyChanges == policyChanges, state.isUnindexed else { return }
            try replacePointer("index") { $0.isUnindexed = false }
        }
    }
}
