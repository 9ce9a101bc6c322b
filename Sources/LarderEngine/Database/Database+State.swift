import Platform

/// Changes of a whole database, in the order of all other commits: docs/internals/Databases.md has the table of states, and of what a
/// failure or a crash leaves at each step.
///
/// What may fail for want of room or descriptors comes first, before anything is applied: the new POINTER is written beside the
/// old one. Then the change is applied, and queued; a rename makes it durable in its turn. If that fails, it is undone with all
/// else that was queued.
extension Database {
    /// Changes what POINTER says. Called with `openLock` held, which sees to it that there is one such change at a time; waits
    /// until it is durable, or undone.
    /// - Parameters:
    ///   - operation: for errors.
    ///   - change: of the state. Called twice, the second time with all shard locks held.
    ///   - applying: called with all shard locks held, once the state is changed.
    ///   - committed: called when the change is durable.
    func replacePointer(
        _ operation: String, _ change: (inout DatabaseState) -> Void, applying: () -> Void = {},
        committed: @escaping () -> Void = {}
    ) throws(LarderError) {
        try pipeline.wait(for: try applyPointer(operation, change, applying: applying, committed: committed))
    }

    /// As ``replacePointer(_:_:applying:committed:)``, and does not wait. Called with `openLock` held, until the change is
    /// decided.
    /// - Returns: what has to be waited for.
    func applyPointer(
        _ operation: String, _ change: (inout DatabaseState) -> Void, applying: () -> Void = {},
        committed: @escaping () -> Void = {}
    ) throws(LarderError) -> CommitTicket {
        var next = appliedState
        change(&next)
        let replacement = try files.stage(next.pointer, operation, store: appliedState.store)
        return shards.withAllLocked {
            change(&applied)
            applying()
            return enqueueControl(
                perform: { [files] () throws(LarderError) in try files.putInPlace(replacement) }, committed: committed)
        }
    }

    /// Queues a change of the whole database that was applied. Called with all shard locks held.
    func enqueueControl(
        perform: @escaping () throws(LarderError) -> Void, committed: @escaping () -> Void
    ) -> CommitTicket {
        let state = applied
        let sequence = pipeline.enqueue(
            perform: perform,
            committed: { [self] sequence in
                let was = shards.withAllLocked { () -> DatabaseState in
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

    // MARK: Epochs

    /// How the epoch that takes the place of another one stands to it.
    enum Succession {
        /// It begins empty: entries in memory go, and what the journal has does not count any more. A purge.
        case void
        /// It has taken over what LevelDB had: entries in memory stay as they are, dirty or not, and what the journal has
        /// counts from an epoch on. For files that are built anew beside those in use.
        case heir(journalFrom: UInt64)
    }

    /// Makes another epoch the current one: durably, or not at all. Called with `openLock` held; waits.
    ///
    /// - Parameters:
    ///   - store: the new one. If this throws, it is not in use, and is closed and removed later.
    ///   - rules: policy and what is dead.
    ///   - ending: what readers of the old store are told.
    ///   - applying: called with all shard locks held, once the new store is the applied one: for what an heir still has to do
    ///     to the entries in memory.
    /// - Returns: the old store, still open, for its owner to dispose of; nil when none was open.
    @discardableResult
    func switchEpoch(
        to store: EpochStore, rules: FreshnessRules, _ succession: Succession, ending: EpochStore.Ending,
        operation: String, applying: () -> Void = {}
    ) throws(LarderError) -> EpochStore? {
        let old = appliedState.store
        do throws(LarderError) {
            try replacePointer(operation) { state in
                state.presence = .open(store)
                switch succession {
                case .void:
                    state.startEmpty(store.epoch, rules)
                    state.isUnmade = !store.isMade
                case .heir(let journalFrom):
                    state.rules = rules
                    state.epoch = store.epoch
                    state.journalFrom = journalFrom
                    state.isEpochUnknown = false
                    state.isUnmade = !store.isMade
                }
            } applying: {
                if case .void = succession { clearEntries() } else { resolve() }
                applying()
            } committed: {
                old?.end(ending)
            }
        } catch {
            // Unless the roll-back did so.
            if store.ending == .none {
                store.end(.deleted)
                context.disposalQueue.add(store)
            }
            throw error
        }
        return old
    }

    /// Has POINTER say that the epoch's files are there, once they are: until then nobody would notice their loss.
    func settlePointer() throws(LarderError) {
        let state = durableState
        guard state.isUnmade, let store = state.store, store.isMade, life.openLock.tryLock() else { return }
        defer { life.openLock.unlock() }
        guard appliedState.store === store, appliedState.isUnmade else { return }
        try replacePointer("settle") { $0.isUnmade = false }
    }
}
