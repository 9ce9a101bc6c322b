/// The entries that a purge removes.
package enum PurgeSelection: Sendable {
    /// All entries, in one step, however many there are.
    /// - Parameter counting: whether the report has the number of entries, which requires reading all of them.
    case all(counting: Bool)
    /// The entries whose keys have the prefix, even unreadable entries, in commit units of at most 512. All entries
    /// stored before the call are removed, even after a machine failure. Entries stored during the call may stay.
    case prefix([UInt8])
    /// The entries with one of these tags, in one step and durably, at the cost of an fsync. A value that is being
    /// fetched under an earlier lease is not stored if it has one of the tags.
    /// - Parameter soft: whether the entries become stale for their grace, instead of being removed.
    case tags([[UInt8]], soft: Bool)
    /// The entries that have expired, in commit units of at most 512. Reads all entries, and frees the space.
    /// - Parameter merges: whether to wait until LevelDB has compacted the files. This may take seconds, because one
    ///   thread compacts the files of all databases, and their checkpoints come first. If false, LevelDB compacts the
    ///   files in the background.
    case expired(merges: Bool)
    /// The entries that were last changed at or before a version: another larder has purged them. Reads all entries.
    /// In a database without followers, tags with an empty prefix are purged in one step, like ``tags(_:soft:)``.
    /// - Parameters:
    ///   - prefix: only keys with this prefix.
    ///   - tags: nil for all entries.
    case upTo(ChangeVersion, prefix: [UInt8], tags: [[UInt8]]?)
}

extension Database {
    /// Removes entries. May block.
    /// - Returns: what was removed; without the number of entries if they were not counted.
    /// - Throws: `invalidArgument` for an invalid tag. If a purge of all entries or of tags throws, nothing has
    ///   changed.
    @discardableResult
    package func purge(_ selection: PurgeSelection = .all(counting: true)) throws(LarderError) -> PurgeReport {
        switch selection {
        case .all(let counting): return try purgeAll(counting: counting)
        case .prefix(let prefix): return try RemovalPass.purge(prefix: prefix, of: self)
        case .expired(let merges): return try RemovalPass.purgeExpired(of: self, merges: merges)
        case .upTo(let version, let prefix, let tags):
            if let tags, prefix.isEmpty, !context.changeLog.isFollowed(self) {
                return try purge(.tags(tags, soft: false))
            }
            return try RemovalPass.purge(upTo: version, prefix: prefix, tags: tags.map { Set($0) }, of: self)
        case .tags(let tags, let soft):
            try tagPurges.purge(tags, soft: soft)
            return PurgeReport(entries: nil)
        }
    }
}

/// A pass over the entries of a database in the order of their keys. Removes those that match, in commit units of at
/// most 512. Scans without locks, and checks each match again when it is removed.
struct RemovalPass {
    /// The maximum number of removals in one commit unit.
    private static let removedPerUnit = 512
    /// The maximum number of entries read with one cursor. Limited, because LevelDB keeps old files for an open cursor.
    private static let scannedPerCursor = 8192

    /// An entry that the scan found, and that is removed if it still matches under the locks.
    private struct Candidate {
        let key: Key
        /// nil if the header cannot be read.
        let header: RecordHeader?
        let byteCount: Int
    }

    private let database: Database
    private let prefix: [UInt8]
    /// Whether entries with an unreadable header may match. If not, such an entry ends the pass with an error.
    private var takesUnreadable = true
    private var loading = Loading.anyHeaders
    /// If the pass applies a change of another larder, the version of that change.
    private var version: ChangeVersion?
    /// Whether the removals are reported as a purge.
    private var isPurge = false

    // MARK: Purges

    /// Removes the entries whose keys have the prefix.
    static func purge(prefix: [UInt8], of database: Database) throws(LarderError) -> PurgeReport {
        // End the leases of keys without an entry too. Leases granted from now on stay valid: their holders fetch
        // values that are newer than the call.
        database.leases.end(prefix: prefix)
        database.shards.withAllLocked { database.forgetEvicted() }
        notifyFollowers(of: database, prefix)
        let start = database.now()
        let report = try RemovalPass(database: database, prefix: prefix, isPurge: true).run { _ in
            true
        } stillMatches: { found, header, _ in
            // An entry with a storage time in the future is old too, if its header is the one that the scan found.
            header.storedAt <= start || header == found
        }
        try sync(database)
        return report
    }

    /// Reports the purge to followers, which may still have entries that were evicted here. Called before the first
    /// removal, so that followers receive the purge before entries that are stored during the purge.
    private static func notifyFollowers(of database: Database, _ prefix: [UInt8]) {
        guard database.context.changes.isOn, database.context.changeLog.isFollowed(database) else { return }
        let change = EntryChange(database: database, key: prefix, kind: .purgedPrefix, isUnseen: true)
        _ = database.pipeline.enqueue(perform: {}, committed: { _ in database.context.changes.publish([change]) })
        database.pipeline.drain()
    }

    /// Ensures that purged entries do not return after a machine failure, at any durability, and that evicted entries,
    /// which the purge has not found, do not return after a crash. Needed even if the purge removed nothing: an earlier
    /// purge, whose reply was lost, may have removed the entries without a sync. Calls no fsync if the journal is already
    /// synced.
    private static func sync(_ database: Database) throws(LarderError) {
        if database.context.options.durability != .always { try database.pipeline.sync() }
        try database.dropEvictedFromJournal()
    }

    /// Removes the entries that have expired, and frees their space.
    /// - Parameter merges: whether to wait until LevelDB has compacted the files.
    static func purgeExpired(of database: Database, merges: Bool) throws(LarderError) -> PurgeReport {
        var report = PurgeReport()
        // Flush first: this drops expired entries that are only in memory, so that they never reach LevelDB.
        if try database.readableStore(database.appliedState, "purge") != nil {
            // If too many entries are only in memory, the scan flushes them anyway.
            let (checkpointer, mustFlush) = (database.checkpointer, merges || database.mustFlushToBeRead)
            report = try (mustFlush ? checkpointer.flush(database) : checkpointer.flushIfIdle(database)) ?? report
        }
        let start = database.now()
        report.add(
            try RemovalPass(database: database, prefix: []).run { header in
                header.map { database.rules.freshness($0, now: start) == .gone } ?? false
            } stillMatches: { _, header, rules in
                rules.freshness(header, now: start) == .gone
            })
        if report.entries != 0, let store = database.durableState.store {
            if merges { try store.compactAll() } else { store.wantsCompaction.store(true, ordering: .relaxed) }
        }
        return report
    }

    /// Removes the entries that were last changed at or before a version, because another larder has purged them.
    /// - Parameter tags: only entries with one of these tags; nil for all entries.
    static func purge(
        upTo version: ChangeVersion, prefix: [UInt8], tags: Set<[UInt8]>?, of database: Database
    ) throws(LarderError) -> PurgeReport {
        // End the leases of keys without an entry too. With tags, end all leases, because the tags of the values that
        // are being fetched are unknown.
        database.leases.end(prefix: prefix)
        let log = database.context.changeLog
        let isWhole = prefix.isEmpty && tags == nil
        if isWhole { log.noteForeignPurge(version, in: database) }
        let pass = RemovalPass(
            database: database, prefix: prefix, takesUnreadable: false,
            loading: tags == nil ? .anyHeaders : .records, version: version, isPurge: true)
        let report = try pass.removeEach { header in
            header.map { $0.storedAt <= version.time && (tags == nil || $0.hasTags) } ?? false
        } remove: { update, index, _ in
            update.follow(removal: version, index, tags: tags) == .removed
        }
        if isWhole { log.finishForeignPurge(version, in: database) }
        try sync(database)
        return report
    }

    // MARK: The pass

    /// Removes the entries that match, and still match when they are removed. Leases that were granted in the meantime
    /// stay valid.
    /// - Parameter stillMatches: receives the header that the scan found, the present header, and the present rules.
    private func run(
        _ matches: (RecordHeader?) -> Bool, stillMatches: (RecordHeader?, RecordHeader, FreshnessRules) -> Bool
    ) throws(LarderError) -> PurgeReport {
        try removeEach(matches) { update, index, found in
            let isGone =
                if let header = update.storedHeader(index) {
                    stillMatches(found.header, header, update.rules)
                } else {
                    update.isUnreadable(index) && found.header == nil
                }
            if isGone { update.removeKeepingLease(index) }
            return isGone
        }
    }

    /// - Parameter remove: removes an entry if it still matches, and returns whether the entry was removed.
    private func removeEach(
        _ matches: (RecordHeader?) -> Bool, remove: (Update, Int, Candidate) -> Bool
    ) throws(LarderError) -> PurgeReport {
        let begin = database.context.time.monotonic()
        var report = PurgeReport()
        // The key at which the scan continues; nil at the end.
        var next: [UInt8]? = prefix
        while let from = next {
            let found: [Candidate]
            do throws(LarderError) {
                (found, next) = try scan(from: from, matches)
            } catch {
                // The database was emptied or reopened in the meantime: scan the same part again.
                if error.code == .purged || error.code == .invalidated { continue }
                throw error
            }
            if found.isEmpty { continue }
            try database.commit(found.map(\.key), loading: loading, observing: version) { update in
                update.origin.isPurge = isPurge
                for (index, candidate) in found.enumerated() where remove(update, index, candidate) {
                    report.count(bytes: candidate.byteCount)
                }
            }
        }
        report.milliseconds = database.context.time.monotonic() - begin
        return report
    }

    /// Returns the next matching entries, and the key at which to continue; nil at the end.
    private func scan(
        from start: [UInt8], _ matches: (RecordHeader?) -> Bool
    ) throws(LarderError) -> ([Candidate], next: [UInt8]?) {
        let options = EnumerationOptions(prefix: prefix, start: start, includeExpired: true)
        guard let cursor = try database.cursor(options) else { return ([], nil) }
        defer { cursor.close() }
        var found: [Candidate] = []
        var last: Key?
        for _ in 0..<Self.scannedPerCursor where found.count < Self.removedPerUnit {
            guard try cursor.next() else { return (found, nil) }
            let key = try cursor.key()
            let (header, byteCount) = try cursor.headerAndLength()
            if header == nil, !takesUnreadable { _ = try cursor.header() }
            if matches(header) {
                found.append(Candidate(key: key, header: header, byteCount: key.bytes.count + byteCount))
            }
            last = key
        }
        // Appending a zero byte makes the next key in byte order.
        return (found, last.map { $0.bytes + [0] })
    }
}
