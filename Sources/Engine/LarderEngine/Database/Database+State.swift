import LarderPlatform

/// Operations that change a whole database. They are ordered like other commits. docs/Architecture.md has the table of
/// states, and the effect of a failure or crash at each step.
///
/// Steps that may fail for lack of disk space or descriptors come first, before anything is applied: the new POINTER is
/// written next to the old one. Then the change is applied and queued. When the commit pipeline reaches it, renaming
/// the new POINTER makes it durable. If the rename fails, the change is undone together with all other queued changes.
extension Database {
    /// Changes the state and the file POINTER. Waits until the change is durable or undone. Called with `openLock`
    /// held, so there is one such change at a time.
    /// - Parameters:
    ///   - operation: the operation's name for errors.
    ///   - change: changes the state. Called twice: first with a copy of the state, then with the applied state and all
    ///     shard locks held.
    ///   - applying: called with all shard locks held, after the state has changed.
    ///   - committed: called when the change is durable.
    func replacePointer(
        _ operation: String, _ change: (inout DatabaseState) -> Void, applying: () -> Void = {},
        committed: @escaping () -> Void = {}
    ) throws(LarderError) {
        try pipeline.wait(for: try applyPointer(operation, change, applying: applying, committed: committed))
    }

    /// Like ``replacePointer(_:_:applying:committed:)``, but does not wait. `openLock` must be held until the change is
    /// durable or undone.
    /// - Returns: the ticket to wait for.
    func applyPointer(
        _ operation: String, _ change: (inout DatabaseState) -> Void, applying: () -> Void = {},
        committed: @escaping () -> Void = {}
    ) throws(LarderError) -> CommitTicket {
        try requireInPlace(operation)
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

    /// - Throws: if the files of the larder or of this database were removed, moved or replaced by another program:
    ///   operations by path would change the wrong files.
    func requireInPlace(_ operation: String) throws(LarderError) {
        try pipeline.requireInPlace(operation)
        try appliedState.store?.requireInPlace(operation)
    }

    /// Queues an applied change of the whole database. Called with all shard locks held.
    func enqueueControl(
        perform: @escaping () throws(LarderError) -> Void, committed: @escaping () -> Void
    ) -> CommitTicket {
        control(committed: committed) { pipeline.enqueue(perform: perform, committed: $0) }
    }

    /// Queues an applied change of the whole database. Called with all shard locks held.
    /// - Parameters:
    ///   - committed: called when the change is durable.
    ///   - enqueue: queues the unit that makes the change durable. `enqueue` must arrange that its argument is called
    ///     when the unit is committed.
    func control(committed: @escaping () -> Void, enqueue: (@escaping (UInt64) -> Void) -> UInt64) -> CommitTicket {
        let state = applied
        let sequence = enqueue { [self] sequence in
            let was = shards.withAllLocked { () -> DatabaseState in
                let was = durable
                // This change is durable, so nothing has to wait for it any more.
                if applied.sequence == sequence { applied.sequence = 0 }
                durable = state
                durable.sequence = 0
                indexes.follow()
                return was
            }
            if !isLedger { context.changes.publish(self, was: was, is: state) }
            committed()
        }
        applied.sequence = sequence
        return CommitTicket(sequence: sequence)
    }

    /// Queues the removal of all files, after it was applied to the state. Called with all shard locks held.
    /// - Parameter move: moves the files away. It is called when the commit pipeline reaches this change.
    func enqueueRemoval(
        of store: EpochStore?, _ ending: EpochStore.Ending, move: @escaping () throws(LarderError) -> Void
    ) -> CommitTicket {
        enqueueControl(
            perform: { () throws(LarderError) in
                store?.prepareEnd(ending)
                do throws(LarderError) {
                    try move()
                } catch {
                    store?.cancelEnd()
                    throw error
                }
            }, committed: { store?.end(ending) })
    }

    // MARK: Epochs

    /// The relation of a new epoch (LevelDB) to the one that it replaces.
    enum Succession {
        /// A purge: the new epoch begins empty. Entries in memory are dropped, and the journal's operations are no
        /// longer valid.
        case void
        /// The new epoch has a copy of LevelDB's entries, for example after a salvage. Clean and dirty entries in
        /// memory stay. Operations in the journal are valid if their epoch is at least `journalFrom`.
        case heir(journalFrom: UInt64)
    }

    /// Makes another epoch the current one. Waits until the change is durable or undone. Called with `openLock` held.
    ///
    /// - Parameters:
    ///   - store: the new store. If the call throws, the store is not in use, and is closed and removed later.
    ///   - rules: the policy, and the time ``FreshnessRules/deadBefore``.
    ///   - ending: why the old store is no longer used. Determines the error for readers of the old store.
    ///   - applying: called with all shard locks held, once the new store is the applied one. With
    ///     ``Succession/heir(journalFrom:)`` it can still change the entries in memory.
    /// - Returns: the old store, still open, for its owner to dispose of; nil if none was open.
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
            // The rollback may have ended the new store already.
            if store.ending == .none {
                store.end(.deleted)
                context.disposalQueue.add(store)
            }
            throw error
        }
        return old
    }

    /// Records in POINTER that the epoch's files exist, once they do, so that a loss of the files is detected.
    func recordFilesInPointer() throws(LarderError) {
        let state = durableState
        guard state.isUnmade, let store = state.store, store.isMade, life.openLock.tryLock() else { return }
        defer { life.openLock.unlock() }
        guard appliedState.store === store, appliedState.isUnmade else { return }
        try replacePointer("settle") { $0.isUnmade = false }
    }

    // MARK: Operations of the journal while the epoch was unknown

    /// Applies the valid operations in ``unresolved`` to memory, and drops the others. Called with all shard locks
    /// held, after the epoch became known.
    func resolve() {
        guard !unresolved.isEmpty, !applied.isEpochUnknown else { return }
        for (epoch, operations) in unresolved.epochs.sorted(by: { $0.key < $1.key }) where applied.counts(epoch) {
            for (key, operation) in operations {
                let hash = key.hash
                let shard = shards[Shard.index(hash)]
                key.withBytes { bytes in
                    guard let record = operation.record else {
                        return shard.remove(bytes, hash, sequence: operation.sequence)
                    }
                    record.withUnsafeBytes { shard.put(bytes, hash, stored: $0, sequence: operation.sequence) }
                }
            }
        }
        unresolved = UnresolvedOperations()
    }

    /// Commits the operations in ``unresolved`` again, so that the journal's older segments can be removed.
    /// - Returns: the last of the new commit units; 0 if ``unresolved`` is empty.
    func rewriteUnresolved() -> UInt64 {
        var newest: UInt64 = 0
        let kept = shards.withAllLocked { unresolved.epochs.sorted { $0.key < $1.key } }
        for (epoch, operations) in kept {
            var rest = Array(operations)[...]
            while !rest.isEmpty {
                let slice = rest.prefix(Self.sliceCount)
                rest = rest.dropFirst(Self.sliceCount)
                newest = max(newest, rewrite(slice, epoch))
                pipeline.drain()
            }
        }
        return newest
    }

    private func rewrite(_ slice: ArraySlice<(key: Key, value: UnresolvedOperations.Operation)>, _ epoch: UInt64)
        -> UInt64
    {
        shards.withAllLocked {
            // Operations that were resolved in the meantime are in memory; purged ones are no longer needed.
            guard !unresolved.isEmpty else { return 0 }
            return pipeline.enqueue(.os) { batch, unit in
                batch.select(database: name, number: number, epoch: epoch)
                for (key, operation) in slice {
                    key.withBytes { key in
                        guard let record = operation.record else { return batch.remove(key: key, sequence: unit) }
                        record.withUnsafeBytes { batch.put(key: key, record: $0, sequence: unit) }
                    }
                }
            }
        }
    }
}
