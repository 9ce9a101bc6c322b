import LevelDB
import Platform

extension Database {
    // MARK: All entries

    /// Empties the database at once, whatever its size: a new epoch takes the place of the old one, whose files are
    /// removed in the background. The policy stays. A crash leaves the old database or an empty one; so does an error, which
    /// says that it is the old one. Needs no room on the disk. Snapshots and cursors of before answer with an error. May
    /// block; counting what was removed takes time after the fact. Where nothing was stored since the last purge, nothing is
    /// done.
    /// - Parameter counting: whether the report says how many entries there were, which reads them all.
    package func purge(counting: Bool = true) throws(LarderError) -> PurgeReport {
        try ForkGuard.check("purge")
        let start = context.time.monotonic()
        var report = PurgeReport(entries: counting ? 0 : nil)
        if let ticket = ticketIfEmpty {
            try pipeline.wait(for: ticket)
            return report
        }
        // What is only in memory counts too.
        if counting { _ = try? checkpointer.flush(self) }
        let old = try life.openLock.withLock { () throws(LarderError) -> EpochStore? in
            switch appliedState.presence {
            case .absent: return nil
            case .deleted: throw deletedError("purge")
            case .shut(let error): throw error
            case .closed, .failed, .open: return try startEmptyEpoch()
            }
        }
        if let old {
            report.bytes = FileSystem.size(old.path)
            if counting { report.entries = (try? old.countRecords()) ?? 0 }
            context.disposalQueue.add(old)
        }
        makeRoomIfFull()
        report.milliseconds = context.time.monotonic() - start
        context.statistics.purges.add()
        return report
    }

    /// What a purge has to wait for that finds nothing to remove; nil where it has something to do. No epoch and no file is
    /// made for it: an epoch whose files were never made is empty unless memory has something.
    var ticketIfEmpty: CommitTicket? {
        shards.withAllLocked {
            guard let store = applied.store, !store.isMade, applied.rules.deadBefore == 0,
                shards.all.allSatisfy({ $0.table.dirtyCount == 0 })
            else { return nil }
            return CommitTicket(sequence: applied.sequence)
        }
    }

    /// Called with `openLock` held, where there are files.
    /// - Returns: the store that is no longer current, still open; nil when none could be opened.
    private func startEmptyEpoch() throws(LarderError) -> EpochStore? {
        if try !isOpenAfterAll("purge") {
            do throws(LarderError) {
                try openCurrentEpoch()
            } catch {
                // What is damaged, or cannot be opened because the disk is full, can still be emptied, as long as POINTER can be
                // read. A newer Larder's files cannot.
                guard error.code == .damaged || error.code == .io && (try? files.readPointer()) != nil else {
                    throw error
                }
            }
        }
        if ticketIfEmpty != nil { return nil }
        let state = appliedState
        let epoch = context.nextEpoch(after: state.epoch)
        let old = try switchEpoch(
            to: files.emptyStore(epoch), rules: FreshnessRules(policy: state.rules.policy), .void, ending: .purged,
            operation: "purge")
        if old == nil { files.removeOtherEpochs(than: epoch) }
        return old
    }

    /// Who purges because the disk is full wants the room now, not when the background comes to it.
    private func makeRoomIfFull() {
        guard FileSystem.room(directory: context.directory).map({ $0 < 1 << 20 }) ?? false else { return }
        context.disposalQueue.clear(report: context.report)
        // The journal may have some, and nothing of this database any more.
        try? checkpointer.checkpoint()
    }

    // MARK: The database itself

    /// Deletes the database with its files and its policy. Handles that are still open, their snapshots and cursors
    /// answer with ``LarderError/Code/deleted``. May block.
    /// - Returns: what was removed.
    func delete(counting: Bool) throws(LarderError) -> PurgeReport {
        try ForkGuard.check("delete")
        let start = context.time.monotonic()
        var report = PurgeReport(entries: counting ? 0 : nil)
        if counting { _ = try? checkpointer.flush(self) }
        try life.openLock.withLock { () throws(LarderError) in
            switch appliedState.presence {
            case .deleted: throw deletedError("delete")
            case .shut(let error): throw error
            case .absent:
                shards.withAllLocked { setBoth { $0.endFiles(leaving: .deleted) } }
                return
            case .open(let store): if counting { report.entries = (try? store.countRecords()) ?? 0 }
            case .closed, .failed: break
            }
            report.bytes = files.byteCount
            try removeFiles()
        }
        roster.remove(self)
        report.milliseconds = context.time.monotonic() - start
        return report
    }

    /// Moves the files out of the way, durably, and leaves them to be removed: a rename, which needs no room, in the order of
    /// all commits. If it fails everything is as it was. Called with `openLock` held.
    private func removeFiles() throws(LarderError) {
        let place = context.directory + "/.deleted-\(name)-\(context.nextEpoch(after: 0))"
        let (store, ticket) = shards.withAllLocked { () -> (EpochStore?, CommitTicket) in
            let store = applied.store
            clearEntries()
            applied.endFiles(leaving: .deleted)
            let ticket = enqueueControl(
                perform: { [files] () throws(LarderError) in try files.move(to: place) },
                committed: { store?.end(.deleted) })
            return (store, ticket)
        }
        do throws(LarderError) {
            try pipeline.wait(for: ticket)
        } catch {
            throw (error.underlying as? LarderError) ?? error
        }
        store?.close()
        context.disposalQueue.remove(place)
    }
}
