/// Changes of a whole database, in the order of all other commits.
extension Database {
    /// Makes the applied state durable: called with all shard locks held, after the state was changed.
    /// - Parameter committed: runs once the state is on the disk.
    func enqueueState(committed: @escaping () -> Void = {}) -> CommitTicket {
        guard let store = applied.store else { return .none }
        let pointer = PointerFile(
            epoch: store.epoch, rules: applied.rules, generation: applied.generation,
            isUnindexed: applied.isUnindexed)
        let path = directory + "/" + PointerFile.name
        return enqueueControl(
            perform: { [self] () throws(LarderError) in
                let unsynced = try wrapFileErrors("write \(PointerFile.name)") { () throws(FileError) in
                    try FileSystem.replace(path, with: Array(pointer.text.utf8))
                }
                guard let unsynced else { return }
                context.report(.error, "\(unsynced); a failure of the machine now may damage database '\(name)'")
            },
            committed: committed)
    }

    /// Queues a change of the whole database that was applied. Called with all shard locks held.
    private func enqueueControl(
        perform: @escaping () throws(LarderError) -> Void, committed: @escaping () -> Void
    ) -> CommitTicket {
        let state = applied
        let sequence = pipeline.enqueue(
            perform: perform,
            committed: { [self] sequence in
                let was = withAllShards { () -> State in
                    let was = durable
                    // Once it is durable nobody has to wait for it any more.
                    if applied.sequence == sequence { applied.sequence = 0 }
                    durable = state
                    durable.sequence = 0
                    return was
                }
                context.changes.tell(self, was: was, is: state)
                committed()
            })
        applied.sequence = sequence
        return CommitTicket(sequence: sequence)
    }

    /// Takes the store out of use once everything that is queued for it is committed: so the writes of others are never
    /// failed by it. Called with `openLock` held.
    /// - Returns: the store, still open; nil when none was.
    func retire(leaving presence: Presence, _ ending: EpochStore.Ending) throws(LarderError) -> EpochStore? {
        let (store, ticket) = withAllShards { () -> (EpochStore?, CommitTicket) in
            guard let store = applied.store else {
                clearEntries()
                setBoth { $0.presence = presence }
                return (nil, .none)
            }
            clearEntries()
            applied.presence = presence
            return (store, enqueueControl(perform: {}, committed: { store.end(ending) }))
        }
        try pipeline.wait(for: ticket)
        return store
    }
}
