import LarderLevelDB
import LarderPlatform

extension Database {
    // MARK: All entries

    /// Empties the database in one step, whatever its size: a new epoch (LevelDB) replaces the old one, whose files are
    /// removed in the background. The policy stays. A crash leaves the old database or an empty one; an error leaves
    /// the old one. Needs no space on the disk. Earlier snapshots and cursors fail. May block; counting the removed
    /// entries takes additional time. Does nothing if nothing was stored since the last purge.
    /// - Parameter counting: whether the report has the number of entries, which requires reading all of them.
    func purgeAll(counting: Bool) throws(LarderError) -> PurgeReport {
        try ForkGuard.check("purge")
        let start = context.time.monotonic()
        var report = PurgeReport(entries: counting ? 0 : nil)
        if let ticket = ticketIfEmpty(isPurging: true) {
            try pipeline.wait(for: ticket)
            return report
        }
        // Write the entries that are only in memory to LevelDB, so that they are counted too.
        if counting { _ = try? checkpointer.flush(self) }
        let old = try life.openLock.withLock { () throws(LarderError) -> EpochStore? in
            switch appliedState.presence {
            case .absent:
                // Nothing can be stored meanwhile, because creating the files requires `openLock`.
                leases.end(prefix: [])
                return nil
            case .deleted: throw deletedError("purge")
            case .shut(let error): throw error
            case .closed, .failed, .open: return try startEmptyEpoch()
            }
        }
        if let old {
            report.bytes = FileSystem.size(old.path)
            if counting { report.entries = (try? old.countedRecords(rules, now: now()).total) ?? 0 }
            context.disposalQueue.add(old)
        }
        makeRoomIfFull()
        report.milliseconds = context.time.monotonic() - start
        context.statistics.purges.add()
        return report
    }

    /// If there is nothing to remove, so that a purge needs no new epoch or file, returns the purge's ticket; otherwise
    /// nil. An epoch without files is empty unless memory has entries.
    /// - Parameter isPurging: whether to also make all running fetches outdated, so that no fetch can store a value
    ///   from before the purge.
    func ticketIfEmpty(isPurging: Bool = false) -> CommitTicket? {
        shards.withAllLocked {
            guard let store = applied.store, !store.isMade, applied.rules.deadBefore == 0,
                shards.all.allSatisfy({ $0.table.dirtyCount == 0 })
            else { return nil }
            if isPurging { for shard in shards.all { shard.leases?.changed(prefix: []) } }
            return CommitTicket(sequence: applied.sequence)
        }
    }

    /// Replaces the current epoch with an empty one. Called only if there are files, with `openLock` held.
    /// - Returns: the previous store, still open; nil if there was nothing to remove, or the store could not be opened.
    private func startEmptyEpoch() throws(LarderError) -> EpochStore? {
        let opening = DatabaseOpening(database: self)
        if try !opening.retryRollbackAndCheckOpen("purge") {
            do throws(LarderError) {
                try opening.openCurrentEpoch()
            } catch {
                // A damaged database can still be purged. A database that could not be opened because of an I/O error,
                // such as a full disk, can be purged if POINTER is readable. Files of a newer Larder cannot be purged.
                let pointer = try? files.readPointer()
                guard error.code == .damaged || error.code == .io && pointer != nil else { throw error }
                // If the database's settings are still unknown, adopt those that POINTER contains.
                if let pointer { adoptIfUnknown(pointer) }
            }
        }
        if ticketIfEmpty(isPurging: true) != nil { return nil }
        let state = appliedState
        let epoch = context.nextEpoch(after: state.epoch)
        let old = try switchEpoch(
            to: files.emptyStore(epoch), rules: state.rules.with(state.rules.settings), .void, ending: .purged,
            operation: "purge")
        if old == nil { files.removeOtherEpochs(than: epoch) }
        return old
    }

    /// Frees space immediately if the disk is full. The full disk may be the reason for the purge.
    private func makeRoomIfFull() {
        guard FileSystem.room(directory: context.directory).map({ $0 < 1 << 20 }) ?? false else { return }
        context.disposalQueue.clear { context.report($0, $1) }
        // This database no longer needs its entries in the journal, so a checkpoint may free space.
        try? checkpointer.checkpoint()
    }

    // MARK: The database itself

    /// Deletes the database with its files and its policy. Open handles, their snapshots and cursors fail with
    /// ``LarderError/Code/deleted``. May block.
    /// - Returns: a report of the removed entries.
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
                set { $0.endFiles(leaving: .deleted) }
                return
            case .open(let store):
                if counting { report.entries = (try? store.countedRecords(rules, now: now()).total) ?? 0 }
            case .closed, .failed: break
            }
            try requireInPlace("delete")
            report.bytes = files.byteCount
            let purges = rules.purges
            // Record this before the files are removed: after a crash in between, the database must not count as lost.
            try? context.sequences.note(name, exists: false)
            do throws(LarderError) {
                try removeFiles()
            } catch {
                try? context.sequences.note(name, exists: true)
                throw error
            }
            tagPurges.forget(purges)
        }
        roster.remove(self)
        report.milliseconds = context.time.monotonic() - start
        return report
    }

    /// Renames the database's directory durably, in the order of all commits; the files are removed later. The rename
    /// needs no space. If it fails, nothing has changed. Called with `openLock` held.
    private func removeFiles() throws(LarderError) {
        let place = context.directory + "/.deleted-\(name)-\(context.nextEpoch(after: 0))"
        let (store, ticket) = shards.withAllLocked { () -> (EpochStore?, CommitTicket) in
            let store = applied.store
            clearEntries()
            applied.endFiles(leaving: .deleted)
            let ticket = enqueueRemoval(of: store, .deleted) { [files] () throws(LarderError) in
                try files.move(to: place)
            }
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
