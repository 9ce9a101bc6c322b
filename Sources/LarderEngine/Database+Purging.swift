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
        try ForkGuard.check("purge")
        let start = context.time.monotonic()
        var report = PurgeReport()
        // What is only in memory counts too.
        if counting { _ = try? checkpointer.flush(self) }
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
    /// - Returns: the store that is no longer current, still open; nil when the old files are gone already.
    private func startNewEpoch() throws(LarderError) -> EpochStore? {
        if appliedState.store == nil {
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
            // A full disk has no room for a second epoch: give the old one up first. For no other reason.
            guard isDiskFull else { throw error }
            try removeFilesAndStartEmpty()
            return nil
        }
        let (old, ticket) = withAllShards { () -> (EpochStore?, CommitTicket) in
            let old = applied.store
            clearEntries()
            applied.presence = .open(fresh)
            applied.startEmpty(FreshnessRules(policy: applied.rules.policy))
            return (old, enqueueState { old?.end(.purged) })
        }
        try pipeline.wait(for: ticket)
        return old
    }

    private var isDiskFull: Bool {
        do throws(FileError) {
            try FileSystem.probe(directory: directory, bytes: 65_536)
            return false
        } catch {
            return error.number == ENOSPC || error.number == EDQUOT
        }
    }

    private func removeFilesAndStartEmpty() throws(LarderError) {
        let policy = policyOnDisk
        try removeFiles(leaving: .absent)
        // The journal may take the room that is needed, and has nothing of this database any more.
        try? checkpointer.checkpoint()
        withAllShards { setBoth { $0.startEmpty(FreshnessRules(policy: policy)) } }
        try create(policy)
    }

    /// Moves the files out of the way, durably, and leaves them to be removed. Called with `openLock` held.
    private func removeFiles(leaving presence: Presence) throws(LarderError) {
        let grave = context.directory + "/.deleted-\(name)-\(context.nextEpoch(after: 0))"
        isLosingFiles.store(true, ordering: .releasing)
        defer { isLosingFiles.store(false, ordering: .releasing) }
        let epoch = durableState.store?.epoch
        try retire(leaving: presence, .deleted)?.close()
        do throws(LarderError) {
            try wrapFileErrors("delete") { () throws(FileError) in try FileSystem.rename(directory, to: grave) }
        } catch {
            // The files are where they were, and can be opened again.
            withAllShards {
                setBoth {
                    $0.presence = .closed
                    if let epoch { $0.epochOnDisk = epoch }
                }
                checkpointer.restore(self)
            }
            throw error
        }
        context.graveyard.remove(grave)
        do throws(FileError) {
            try FileSystem.syncDirectory(context.directory)
        } catch {
            context.report(.error, "\(error); a failure of the machine now may bring database '\(name)' back")
        }
    }

    // MARK: The database itself

    /// Deletes the database with its files and its policy. Handles that are still open, their snapshots and cursors
    /// answer with ``LarderError/Code/deleted``. May block.
    /// - Returns: what was removed.
    func delete(counting: Bool) throws(LarderError) -> PurgeReport {
        try ForkGuard.check("delete")
        let start = context.time.monotonic()
        var report = PurgeReport()
        if counting { _ = try? checkpointer.flush(self) }
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
}
