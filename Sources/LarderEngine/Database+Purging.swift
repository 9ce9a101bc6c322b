import LevelDB

/// What a purge removed.
package struct PurgeReport: Sendable, Equatable {
    package var entries = 0
    /// The bytes of the files that were given up, or of the keys and values that were removed from files that stay.
    package var bytes = 0
    package var milliseconds: Int64 = 0

    package init() {}

    package mutating func add(_ other: PurgeReport) {
        entries += other.entries
        bytes += other.bytes
        milliseconds += other.milliseconds
    }
}

extension Database {
    // MARK: All entries

    /// Empties the database at once, whatever its size: a new epoch takes the place of the old one, whose files are
    /// removed in the background. The policy stays. A crash leaves the old database or an empty one. Snapshots and
    /// cursors of before answer with an error. May block; counting what was removed takes time after the fact.
    /// - Parameter counting: whether the report says how many entries there were, which reads them all.
    package func purge(counting: Bool = true) throws(LarderError) -> PurgeReport {
        let start = context.time.monotonic()
        var report = PurgeReport()
        try openLock.withLock { () throws(LarderError) in
            switch appliedState.presence {
            case .absent: return
            case .deleted: throw deletedError("purge")
            case .shut(let error): throw error
            case .closed, .failed, .open: break
            }
            guard let old = try startNewEpoch() else { return }
            report.bytes = FileSystem.size(old.path)
            if counting { report.entries = (try? old.countRecords()) ?? 0 }
            context.graveyard.bury(old)
        }
        report.milliseconds = context.time.monotonic() - start
        context.statistics.purges.add()
        return report
    }

    /// Called with `openLock` held.
    /// - Returns: the store that is no longer current, still open; nil when the old files could not be read at all.
    private func startNewEpoch() throws(LarderError) -> EpochStore? {
        if case .open = appliedState.presence {
        } else {
            do throws(LarderError) {
                try openCurrentEpoch()
            } catch {
                // What cannot be opened can still be emptied, unless a newer Larder wrote it.
                guard error.code == .damaged else { throw error }
                try removeFilesAndStartEmpty()
                return nil
            }
        }
        let fresh: EpochStore
        do throws(LarderError) {
            fresh = try makeEpoch(context.nextEpoch(after: appliedState.store?.epoch ?? 0), in: directory)
        } catch {
            guard error.code == .io else { throw error }
            // A full disk has no room for a second epoch: give the old one up first.
            try removeFilesAndStartEmpty()
            return nil
        }
        let (old, ticket) = withAllShards { () -> (EpochStore?, CommitTicket) in
            let old = applied.store
            clearOverlay()
            applied.presence = .open(fresh)
            applied.rules.deadBefore = 0
            return (old, enqueueState { old?.end(.purged) })
        }
        try pipeline.wait(for: ticket)
        return old
    }

    /// Makes the applied state durable: called with all shard locks held, after the state was changed.
    /// - Parameter committed: runs once the state is on the disk.
    private func enqueueState(committed: @escaping () -> Void = {}) -> CommitTicket {
        guard let store = applied.store else { return .none }
        let pointer = PointerFile(epoch: store.epoch, rules: applied.rules, generation: applied.generation)
        let path = directory + "/" + PointerFile.name
        var state = applied
        let action = CommitUnit.Action.control(
            perform: { [self] () throws(LarderError) in
                try wrapFileErrors("write \(PointerFile.name)") { () throws(FileError) in
                    try FileSystem.replace(path, with: Array(pointer.text.utf8))
                }
            },
            committed: { [self] in
                withAllShards {
                    // Once it is durable nobody has to wait for it any more.
                    if applied.sequence == state.sequence { applied.sequence = 0 }
                    durable = state
                    durable.sequence = 0
                }
                committed()
            })
        let sequence = pipeline.enqueue(CommitUnit(action, sync: true))
        state.sequence = sequence
        applied.sequence = sequence
        return CommitTicket(sequence: sequence)
    }

    private func removeFilesAndStartEmpty() throws(LarderError) {
        let policy = appliedState.rules.policy
        try removeFiles(leaving: .absent)
        try create(policy)
    }

    /// Moves the files out of the way, durably, and leaves them to be removed. Called with `openLock` held.
    private func removeFiles(leaving presence: Presence) throws(LarderError) {
        try pipeline.settle()
        let grave = context.directory + "/.deleted-\(name)-\(context.nextEpoch(after: 0))"
        let old = withAllShards {
            defer {
                clearOverlay()
                setBoth { $0.presence = presence }
            }
            return applied.store
        }
        old?.end(.deleted, movedTo: grave)
        old?.close()
        try wrapFileErrors("delete") { () throws(FileError) in
            try FileSystem.rename(directory, to: grave)
            try FileSystem.syncDirectory(context.directory)
            try FileSystem.removeTree(grave)
        }
    }

    // MARK: The database itself

    /// Deletes the database with its files and its policy. Handles that are still open, their snapshots and cursors
    /// answer with ``LarderError/Code/deleted``. May block.
    /// - Returns: what was removed.
    func delete(counting: Bool) throws(LarderError) -> PurgeReport {
        let start = context.time.monotonic()
        var report = PurgeReport()
        try openLock.withLock { () throws(LarderError) in
            switch appliedState.presence {
            case .deleted: throw deletedError("delete")
            case .shut(let error): throw error
            case .absent:
                withAllShards { setBoth { $0.presence = .deleted } }
                return
            case .open(let store): if counting { report.entries = (try? store.countRecords()) ?? 0 }
            case .closed, .failed: break
            }
            report.bytes = FileSystem.size(directory)
            try removeFiles(leaving: .deleted)
        }
        table.remove(self)
        report.milliseconds = context.time.monotonic() - start
        return report
    }

    // MARK: Some entries

    /// Removes the entries whose keys begin with `prefix`, in commit units of at most 512: what is stored under the
    /// prefix before the call is gone when it returns; what is stored meanwhile stays. May block.
    package func purge(prefix: [UInt8]) throws(LarderError) -> PurgeReport {
        try removeMatching(EnumerationOptions(prefix: prefix, includeExpired: true)) { header, _, start in
            header.storedAt <= start
        }
    }

    /// Removes the entries that are expired now, in commit units of at most 512, and gives their space back. Reads all
    /// entries. May block.
    package func purgeExpired() throws(LarderError) -> PurgeReport {
        let report = try removeMatching(EnumerationOptions(includeExpired: true)) { header, rules, start in
            rules.freshness(header, now: start) == .expired
        }
        if report.entries > 0, let store = durableState.store {
            try store.access("compact") { (database) throws(LevelDBError) in try database.compact() }
        }
        return report
    }

    private func removeMatching(
        _ options: EnumerationOptions, _ matches: (RecordHeader, FreshnessRules, Int64) -> Bool
    ) throws(LarderError) -> PurgeReport {
        let begin = context.time.monotonic()
        let start = now()
        var report = PurgeReport()
        guard let cursor = try cursor(options) else { return report }
        var more = true
        while more {
            var keys: [Key] = []
            while keys.count < 512, more {
                more = try cursor.next()
                if more, matches(try cursor.header(), rules, start) { keys.append(try cursor.key()) }
            }
            if keys.isEmpty { continue }
            try commit(keys, loading: true) { update in
                for (index, key) in keys.enumerated() {
                    guard let record = update.stored(index), matches(record.header, update.rules, start) else {
                        continue
                    }
                    report.entries += 1
                    report.bytes += key.bytes.count + record.payloadCount
                    update.remove(index)
                }
            }
        }
        report.milliseconds = context.time.monotonic() - begin
        return report
    }

    // MARK: Policy

    /// Changes the policy. Entries that follow it are judged by the new one from now on; what the old one had let
    /// expire stays dead. The database must be ready for writing.
    /// - Returns: what the answer has to wait for.
    package func changePolicy(_ policy: UpdatePolicy, now: Int64) throws(LarderError) -> CommitTicket {
        try withAllShards { () throws(LarderError) in
            guard case .open(let store) = applied.presence else {
                if case .deleted = applied.presence { throw deletedError("policy") }
                throw LarderError(.noSuchDatabase, "the database is not open", operation: "policy", database: name)
            }
            if let error = store.suspension("policy") { throw error }
            guard policy != applied.rules.policy else { return CommitTicket(sequence: applied.sequence) }
            applied.rules = applied.rules.changed(to: policy, now: now)
            for index in 0..<Shard.count { shard(index).version += 1 }
            return enqueueState()
        }
    }

    /// As ``changePolicy(_:now:)``, and waits until it is on the disk. Creates the database if there is none.
    package func setPolicy(_ policy: UpdatePolicy) throws(LarderError) {
        if !isReady(forWriting: true) { try prepare(forWriting: true, policy: policy) }
        try pipeline.wait(for: try changePolicy(policy, now: now()))
    }
}
