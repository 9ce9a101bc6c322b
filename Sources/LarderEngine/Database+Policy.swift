/// The policy of a database.
extension Database {
    /// Changes the policy. Entries that follow it are judged by the new one from now on; what the old one had let
    /// expire stays dead. The database must be ready for writing.
    /// - Returns: what the answer has to wait for.
    package func changePolicy(_ policy: UpdatePolicy, now: Int64) throws(LarderError) -> CommitTicket {
        try ForkGuard.check("policy")
        return try withAllShards { () throws(LarderError) in
            _ = try writableStore(applied, "policy")
            guard policy != applied.rules.policy else { return CommitTicket(sequence: applied.sequence) }
            if !ExpiryIndex.indexes(applied.rules.policy) { applied.isUnindexed = true }
            applied.rules = applied.rules.changed(to: policy, now: now)
            applied.policyChanges += 1
            return enqueueState()
        }
    }

    /// As ``changePolicy(_:now:)``, and waits until it is on the disk. Creates the database if there is none.
    package func setPolicy(_ policy: UpdatePolicy) throws(LarderError) {
        if !isReady(forWriting: true) { try prepare(forWriting: true, policy: policy) }
        try pipeline.wait(for: try changePolicy(policy, now: now()))
    }

    /// Notes that every governed entry of `store` has its key in the expiry index, unless the policy was changed since
    /// it had been changed `policyChanges` times. Waits until that is on the disk.
    func finishIndexing(_ store: EpochStore, policyChanges: Int) throws(LarderError) {
        let ticket = withAllShards { () -> CommitTicket in
            guard applied.store === store, applied.policyChanges == policyChanges, applied.isUnindexed else {
                return .none
            }
            applied.isUnindexed = false
            return enqueueState()
        }
        try pipeline.wait(for: ticket)
    }
}
