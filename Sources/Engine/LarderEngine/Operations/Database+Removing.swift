import LarderLevelDB
import Synchronization

/// Operations that remove many entries of a database.
extension Database {
    /// The maximum number of removals in one commit unit.
    private static let removedPerUnit = 512
    /// The maximum number of entries read with one cursor. Limited, because LevelDB keeps old files for an open cursor.
    private static let scannedPerCursor = 8192

    /// Removes the entries whose keys have the prefix, in commit units of at most 512. When it returns, all entries
    /// stored before the call are removed, and stay so after a machine failure. Entries stored during the call are
    /// kept. Also removes unreadable entries. May block.
    package func purge(prefix: [UInt8]) throws(LarderError) -> PurgeReport {
        // End the leases of keys without an entry too. Leases granted from now on stay valid: their holders fetch
        // values that are newer than the call.
        leases.end(prefix: prefix)
        shards.withAllLocked { forgetEvicted() }
        notifyFollowers(purgeOf: prefix)
        let report = try removeMatching(prefix) { _, _, _ in
            true
        } stillMatches: { found, header, _, start in
            // An entry with a storage time in the future is old too, if its header is the one that the scan found.
            header.storedAt <= start || header == found
        }
        try syncPurge()
        return report
    }

    /// Ensures that purged entries do not return after a machine failure, at any durability. Needed even if the purge
    /// removed nothing: an earlier removal, such as that of a purge whose reply was lost, may not be synced yet. Calls
    /// no fsync if the journal is already synced.
    func syncPurge() throws(LarderError) {
        if context.options.durability != .always { try pipeline.sync() }
    }

    /// Reports the purge to followers, which may still have entries that were evicted here. Called before the first
    /// removal, so that followers receive the purge before the entries that are stored while it runs.
    private func notifyFollowers(purgeOf prefix: [UInt8]) {
        guard context.changes.isOn, context.changeLog.isFollowed(self) else { return }
        _ = pipeline.enqueue(perform: {}, committed: { [self] _ in context.changeLog.purged(prefix: prefix, in: self) })
        pipeline.drain()
    }

    /// Removes the entries that have expired, in commit units of at most 512, and frees their space. Reads all entries.
    /// May block.
    /// - Parameter merges: whether to wait until LevelDB has compacted the files. This may take seconds, because one
    ///   thread compacts the files of all databases, and their checkpoints come first. If false, LevelDB compacts the
    ///   files in the background.
    package func purgeExpired(merges: Bool = true) throws(LarderError) -> PurgeReport {
        var report = PurgeReport()
        // Flush first: this drops expired entries that are only in memory, so that they never reach LevelDB.
        if try readableStore(appliedState, "purge") != nil {
            // If too many entries are only in memory, the scan flushes them anyway.
            let mustFlush = merges || mustFlushToBeRead
            report = try (mustFlush ? checkpointer.flush(self) : checkpointer.flushIfIdle(self)) ?? PurgeReport()
        }
        report.add(
            try removeMatching([]) { header, rules, start in
                header.map { rules.freshness($0, now: start) == .gone } ?? false
            } stillMatches: { _, header, rules, start in
                rules.freshness(header, now: start) == .gone
            })
        if report.entries != 0, let store = durableState.store {
            if merges { try store.compactAll() } else { store.wantsCompaction.store(true, ordering: .relaxed) }
        }
        return report
    }

    /// An entry that the scan found, and that is removed if it still matches under the locks.
    private struct Candidate {
        let key: Key
        /// nil if the header cannot be read.
        let header: RecordHeader?
        let byteCount: Int
    }

    private func removeMatching(
        _ prefix: [UInt8],
        _ matches: (RecordHeader?, FreshnessRules, Int64) -> Bool,
        stillMatches: (RecordHeader?, RecordHeader, FreshnessRules, Int64) -> Bool
    ) throws(LarderError) -> PurgeReport {
        let begin = context.time.monotonic()
        let start = now()
        var report = PurgeReport()
        // The key at which the scan continues; nil at the end.
        var next: [UInt8]? = prefix
        while let from = next {
            let found: [Candidate]
            do throws(LarderError) {
                (found, next) = try scan(prefix, from: from) { matches($0, rules, start) }
            } catch {
                // The database was emptied or reopened in the meantime: scan the same part again.
                if error.code == .purged || error.code == .invalidated { continue }
                throw error
            }
            if found.isEmpty { continue }
            try commit(found.map(\.key), .headers) { update in
                for (index, candidate) in found.enumerated() {
                    let isGone: Bool
                    if let header = update.storedHeader(index) {
                        isGone = stillMatches(candidate.header, header, update.rules, start)
                    } else {
                        isGone = update.isUnreadable(index) && candidate.header == nil
                    }
                    guard isGone else { continue }
                    report.count(bytes: candidate.byteCount)
                    update.removeKeepingLease(index)
                }
            }
        }
        report.milliseconds = context.time.monotonic() - begin
        return report
    }

    /// Returns the next matching entries, and the key at which to continue; nil at the end.
    private func scan(
        _ prefix: [UInt8], from start: [UInt8], _ matches: (RecordHeader?) -> Bool
    ) throws(LarderError) -> ([Candidate], next: [UInt8]?) {
        let options = EnumerationOptions(prefix: prefix, start: start, includeExpired: true)
        guard let cursor = try cursor(options) else { return ([], nil) }
        defer { cursor.close() }
        var found: [Candidate] = []
        var last: Key?
        for _ in 0..<Self.scannedPerCursor where found.count < Self.removedPerUnit {
            guard try cursor.next() else { return (found, nil) }
            let key = try cursor.key()
            let (header, byteCount) = try cursor.headerAndLength()
            if matches(header) {
                found.append(Candidate(key: key, header: header, byteCount: key.bytes.count + byteCount))
            }
            last = key
        }
        // Appending a zero byte makes the next key in byte order.
        return (found, last.map { $0.bytes + [0] })
    }
}
