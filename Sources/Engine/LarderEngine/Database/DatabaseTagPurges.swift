import LarderPlatform

/// The purges of a database's tags. A purge stores only the tag and the purge's own sequence. All records with the tag
/// that were stored before the purge then count as removed; after a soft purge, as stale. The sweep reclaims their
/// space later.
struct DatabaseTagPurges {
    fileprivate let database: Database

    private var context: EngineContext { database.context }
    private var pipeline: CommitPipeline { database.pipeline }

    /// Purges tags: see ``PurgeSelection/tags(_:soft:)``.
    func purge(_ tags: [[UInt8]], soft: Bool) throws(LarderError) {
        try ForkGuard.check("purge")
        let hashes: [UInt64]
        do throws(TagRules.Impossible) {
            hashes = try TagRules.checkedForPurge(tags).map { tag in tag.withUnsafeBytes { TagPurges.hash($0) } }
        } catch {
            throw LarderError(.invalidArgument, error.message, operation: "purge", database: database.name)
        }
        let ledger = try ledger("purge")
        while true {
            if !database.isReady(forWriting: true) { try database.prepare(forWriting: true) }
            let isDone = try database.changeIfOpen("purge") { (_) throws(LarderError) in
                try expect(ledger)
                try pipeline.wait(for: apply(tags, hashes, softAt: soft ? database.now() : nil, ledger))
            }
            if isDone { break }
        }
        context.statistics.purges.add()
    }

    private func ledger(_ operation: String) throws(LarderError) -> Ledger {
        guard let ledger = database.roster.ledger else {
            throw LarderError(.closed, "the larder was closed", operation: operation, database: database.name)
        }
        return ledger
    }

    /// Before the first purge, stores the database's ``TagPurges/floors`` in the ledger. Also records in POINTER that
    /// the ledger must have them, so that a loss of the ledger is detected. Called with `openLock` held.
    private func expect(_ ledger: Ledger) throws(LarderError) {
        try ledger.prepare()
        if database.appliedState.hasTagPurges { return }
        try ledger.commit([TagFacts.change((database.rules.purges ?? TagPurges()).floors, of: nil, in: database.name)])
        try database.replacePointer("purge", { $0.hasTagPurges = true })
    }

    /// Applies a purge, and queues the unit that stores it. Called with `openLock` held.
    private func apply(
        _ names: [[UInt8]], _ tags: [UInt64], softAt: Int64?, _ ledger: Ledger
    ) throws(LarderError) -> CommitTicket {
        let facts = ledger.database
        // The ledger comes first in the order of locks.
        return try facts.shards.withAllLocked { () throws(LarderError) in
            let store = try facts.writableStore(facts.applied.presence, "purge")
            return database.shards.withAllLocked {
                // Higher than all sequences of this database's entries, because its shards are locked.
                let sequence = pipeline.everythingApplied.sequence + 1
                let previous = database.applied.rules.purges ?? TagPurges()
                let purges = previous.adding(tags, sequence, softAt: softAt)
                // Invalidate reads of LevelDB in progress, because they have checked entries against the previous
                // purges.
                let hashes = Set(tags)
                for shard in database.shards.all {
                    shard.reads.changedAll()
                    shard.evictedKeys.removeAll()
                    shard.leases?.changed(tags: hashes, sequence)
                }
                database.applied.rules.purges = purges
                let isCoarse = purges.floors != previous.floors
                return database.control(
                    committed: { [database = self.database] in
                        database.context.changes.publish(isCoarse ? .replaced : .purgedTags(names), of: database)
                    },
                    enqueue: { committed in
                        let changes = TagFacts.changes(from: previous, to: purges, of: tags, in: database.name)
                        return ledger.apply(changes, to: store) { pipeline.enqueue(committed: committed, $0) }
                    })
            }
        }
    }

    // MARK: The start

    /// Adopts the ledger's purges of tags. Called before other threads know the database.
    /// - Parameter loss: the recorded loss of facts; nil if none were lost.
    func adopt(_ purges: TagPurges?, _ loss: Ledger.Loss?) {
        var purges = purges
        if let loss, database.appliedState.hasTagPurges || purges != nil {
            purges = (purges ?? TagPurges()).adding(TagPurges.Note(soft: loss.sequence, softAt: loss.time))
        }
        database.set { $0.rules.purges = purges }
        if let purges { resume(behind: purges) }
    }

    /// Ensures that records stored from now on have higher sequences than the purges.
    private func resume(behind purges: TagPurges) {
        if purges.last > pipeline.everythingApplied.sequence { pipeline.resume(behind: purges.last) }
    }

    /// Returns the purges of tags, which must be known before the files count as open: those in the ledger and in a
    /// file of an earlier version. Moves the file's purges to the ledger. Called with `openLock` held.
    /// - Parameter areExpected: whether tags were purged, according to POINTER.
    func complete(areExpected: Bool) throws(LarderError) -> TagPurges? {
        let known = database.rules.purges
        let content = try database.files.wrapErrors("open") { () throws(FileError) in try database.files.tags.read() }
        var doubt: String?
        var found: TagPurges?
        switch content {
        case .none: if areExpected, known == nil { doubt = "the ledger does not have them" }
        case .lines([]) where areExpected && known == nil: doubt = "\(TagsFile.name) does not have them"
        case .lines(let lines): found = TagPurges.read(lines, now: database.now())
        case .damaged(let why): doubt = "\(TagsFile.name) is damaged (\(why))"
        case .newer(let version):
            throw LarderError(
                .newerFormat,
                "\(TagsFile.name) was written by a newer version of Larder (version \(version), this one reads "
                    + "\(TagsFile.formatVersion))", operation: "open", database: database.name)
        }
        if let doubt {
            context.statistics.factLosses.add()
            database.report(
                .error,
                "purges of tags may be lost: \(doubt). All entries with tags that were stored until now are stale")
            let sequence = max(pipeline.everythingApplied.sequence, context.sequences.base) + 1
            found = TagPurges().adding(TagPurges.Note(soft: sequence, softAt: database.now()))
        }
        guard let found else { return known }
        let purges = known.map { $0.adding(found) } ?? found
        resume(behind: purges)
        try ledger("open").commit(TagFacts.all(purges, of: database.name))
        try database.files.wrapErrors("open") { () throws(FileError) in try database.files.tags.remove() }
        return purges
    }

    /// Removes the purges of a deleted database from the ledger. If that fails, they stay and have no effect, because
    /// their sequences are lower than those of all later records.
    func forget(_ purges: TagPurges?) {
        guard let purges, let ledger = database.roster.ledger else { return }
        let changes = TagFacts.all(purges, of: database.name).map { Ledger.Change(key: $0.key, value: nil) }
        try? ledger.commit(changes)
    }
}

extension Database {
    var tagPurges: DatabaseTagPurges { DatabaseTagPurges(database: self) }
}
