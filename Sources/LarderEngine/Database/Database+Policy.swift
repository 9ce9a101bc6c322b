/// The policy of a database.
extension Database {
    /// Changes the policy, and waits until that is on the disk. Entries that follow it are judged by the new one from now on;
    /// what the old one had let expire stays dead. Creates the database if there is none. If it throws, the policy is what it
    /// was. May block.
    package func setPolicy(_ policy: UpdatePolicy) throws(LarderError) {
        try ForkGuard.check("policy")
        while true {
            if !isReady(forWriting: true), try isMade(with: policy) { return }
            let isDone = try life.openLock.withLock { () throws(LarderError) -> Bool in
                let state = appliedState
                // Deleted or set aside meanwhile: another try waits for that, or says so.
                if case .absent = state.presence { return false }
                if case .closed = state.presence { return false }
                _ = try writableStore(state, "policy")
                if policy != state.rules.policy { try pipeline.wait(for: try changePolicy(policy, now: now())) }
                return true
            }
            if isDone { return }
        }
    }

    /// Opens the files, or makes them with a policy.
    /// - Returns: whether they were made with it, and could not be opened then: the policy is on the disk, and the next use says
    ///   what is wrong.
    private func isMade(with policy: UpdatePolicy) throws(LarderError) -> Bool {
        let isNew = !exists
        do throws(LarderError) {
            try prepare(forWriting: true, policy: policy)
            return false
        } catch {
            // Where its name may not be on the disk, it counts as closed.
            guard isNew, case .failed = appliedState.presence, self.policy == policy else { throw error }
            context.report(.warning, "database '\(name)' has the policy \(policy), and cannot be opened: \(error)")
            return true
        }
    }

    /// Applies another policy. Called with `openLock` held, until the change is decided.
    /// - Returns: what has to be waited for.
    package func changePolicy(_ policy: UpdatePolicy, now: Int64) throws(LarderError) -> CommitTicket {
        try applyPointer("policy") { state in
            if !ExpiryIndex.indexes(state.rules.policy) { state.isUnindexed = true }
            state.rules = state.rules.changed(to: policy, now: now)
            state.policyChanges += 1
        }
    }

    /// Notes that every governed entry of `store` has its key in the expiry index, unless the policy was changed since
    /// it had been changed `policyChanges` times. Waits until that is on the disk.
    func finishIndexing(_ store: EpochStore, policyChanges: Int) throws(LarderError) {
        try life.openLock.withLock { () throws(LarderError) in
            let state = appliedState
            guard state.store === store, state.policyChanges == policyChanges, state.isUnindexed else { return }
            try replacePointer("index") { $0.isUnindexed = false }
        }
    }
}
