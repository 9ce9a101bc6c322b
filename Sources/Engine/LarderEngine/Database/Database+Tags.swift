import LarderPlatform

/// Purges of tags: a note of the tag and of the purge's place among all commits. Records with the tag that were stored
/// before are gone from then on, however many there are; the sweep reclaims their space later.
extension Database {
    /// Removes all entries with one of these tags, at once and durably; or makes them stale. Entries that are being
    /// fetched, and that a lease from before would store with one of the tags, are not stored. May block, for an fsync.
    /// - Parameter soft: whether the entries are stale, for their grace, instead of gone.
    /// - Throws: `invalidArgument` for an impossible tag. After an error nothing has changed.
    package func purge(tags: [[UInt8]], soft: Bool) throws(LarderError) {
        try ForkGuard.check("purge")
        let hashes: [UInt64]
        do throws(TagRules.Impossible) {
            hashes = try TagRules.checkedForPurge(tags).map { tag in tag.withUnsafeBytes { TagPurges.hash($0) } }
        } catch {
            throw LarderError(.invalidArgument, error.message, operation: "purge", database: name)
        }
        while true {
            if !isReady(forWriting: true) { try prepare(forWriting: true) }
            let isDone = try changeIfOpen("purge") { (state) throws(LarderError) in
                if !state.hasTagPurges { try makePurgesFile() }
                try pipeline.wait(for: notePurge(tags, hashes, softAt: soft ? now() : nil))
            }
            if isDone { break }
        }
        context.statistics.purges.add()
    }

    /// Before the first purge: makes their file, and notes that it must be there from now on. Called with `openLock`
    /// held.
    private func makePurgesFile() throws(LarderError) {
        try files.wrapErrors("purge") { () throws(FileError) in try files.tags.make() }
        try replacePointer("purge", { $0.hasTagPurges = true })
    }

    /// Applies a purge, and queues its note. Called with `openLock` held, so that notes are written one after another.
    private func notePurge(_ names: [[UInt8]], _ tags: [UInt64], softAt: Int64?) -> CommitTicket {
        shards.withAllLocked {
            // Behind everything that was stored in this database, because its shards are locked.
            let sequence = pipeline.everythingApplied.sequence + 1
            let former = applied.rules.purges ?? TagPurges()
            let purges = former.adding(tags, sequence, softAt: softAt)
            // What is being read from LevelDB was judged by the former purges.
            let hashes = Set(tags)
            for shard in shards.all {
                shard.reads.changedAll()
                shard.leases?.changed(tags: hashes, sequence)
            }
            let lines = tags.map { tag -> TagsFile.Line in
                softAt.map { .soft(tag: tag, sequence: sequence, at: $0) } ?? .hard(tag: tag, sequence: sequence)
            }
            let isCoarse = purges.floor != former.floor
            let isMadeAnew = isCoarse || purges.hasManyLines
            applied.rules.purges = isMadeAnew ? purges.madeAnew : purges
            return enqueueControl(
                perform: { [files, name] () throws(LarderError) in
                    if isMadeAnew {
                        return try files.wrapErrors("purge") { () throws(FileError) in
                            try files.tags.replace(by: purges.lines)
                        }
                    }
                    do throws(TagsFile.NotAdded) {
                        try files.tags.append(lines)
                    } catch {
                        throw LarderError(
                            .io, error.description, operation: "purge", database: name, underlying: error.cause)
                    }
                },
                committed: { [self] in
                    context.changes.tellEach { isCoarse ? $0.replaced(self) : $0.purged(tags: names, in: self) }
                })
        }
    }

    /// The purges in the database's files. Called with `openLock` held, before the files count as open.
    /// - Parameter mustBeThere: whether there were purges.
    func readPurges(mustBeThere: Bool) throws(LarderError) -> TagPurges? {
        var content = try files.wrapErrors("open") { () throws(FileError) in try files.tags.read() }
        if content == .none, mustBeThere { content = .damaged("it is missing") }
        let purges: TagPurges?
        switch content {
        case .none: purges = nil
        case .lines(let lines): purges = TagPurges.read(lines, now: now())
        case .newer(let version):
            throw LarderError(
                .newerFormat,
                "\(TagsFile.name) was written by a newer version of Larder (version \(version), this one reads "
                    + "\(TagsFile.formatVersion))", operation: "open", database: name)
        case .damaged(let why):
            context.report(
                .error,
                "database '\(name)': \(TagsFile.name) is damaged (\(why)); a purge of a tag may be lost, so all entries "
                    + "with tags that were stored until now are gone")
            let everything = TagPurges.everything(before: pipeline.everythingApplied.sequence + 1)
            try files.wrapErrors("open") { () throws(FileError) in try files.tags.replace(by: everything.lines) }
            purges = everything
        }
        // Records that are stored from now on must count as later.
        if let purges, purges.last > pipeline.everythingApplied.sequence { pipeline.goOn(behind: purges.last) }
        return purges
    }
}
