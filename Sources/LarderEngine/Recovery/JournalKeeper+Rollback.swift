import Synchronization

/// What becomes of commits: those who listen are told of them, and databases are taken back where one fails.
///
/// Thread-safe: nothing but constants.
final class DatabaseCommits: CommitOwner {
    private let table: DatabaseTable
    private let keeper: JournalKeeper
    private let changes: ChangeFeed

    init(table: DatabaseTable, keeper: JournalKeeper, changes: ChangeFeed) {
        self.table = table
        self.keeper = keeper
        self.changes = changes
    }

    func committed(_ notes: any CommitNotes) {
        if let list = notes as? ChangeList { changes.tell(list.changes) }
    }

    func takeBack(_ failing: () -> UInt64) {
        // The table stays locked, so that no database joins whose writes would be failed and not taken back.
        table.withAll { all in
            for database in all { database.lockAll() }
            defer { for database in all.reversed() { database.unlockAll() } }
            keeper.takeBack(all, failed: failing())
        }
    }
}

extension JournalKeeper {
    /// Takes databases back to what is durable: their state, and the entries that the journal has. Called with all their
    /// shard locks held. Where the journal cannot be read for now it is still to be done: ``owesTakeBack``.
    /// - Parameter last: the last sequence that failed.
    func takeBack(_ databases: [Database], failed last: UInt64) {
        removal.withLock { lock.withLock { takeBackLocked(databases, last) } }
    }

    private func takeBackLocked(_ databases: [Database], _ last: UInt64) {
        era += 1
        let byName = Dictionary(databases.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
        var isCleared = false
        do throws(LarderError) {
            // First without effect: what cannot be read must not cost what is in memory.
            try replay { _, _ in }
            isCleared = true
            for database in databases { database.revertToDurable() }
            let applier = JournalApplier(usesThreads: false) { byName[$0] }
            defer { applier.finish() }
            try replay(applier.add)
            owes.store(false, ordering: .releasing)
        } catch {
            // Of what was changed as a whole memory has let go already.
            let isWhole = !isCleared && databases.allSatisfy(\.isMemoryWhole)
            if isWhole, error.code == .damaged { return keepRefused(databases, last, error) }
            for database in databases { database.revertIncompletely(isCleared: isCleared, error) }
            // Said once, not with every attempt.
            context.report(
                owes.exchange(true, ordering: .acquiringAndReleasing) ? .debug : .error,
                "the journal cannot be read after a failed commit (\(error)): until it can, nothing is written, and "
                    + "databases that were written to answer with errors")
        }
    }

    /// As ``Journal/replay(known:_:)``, where damage is an error.
    private func replay(_ visit: JournalVisit) throws(LarderError) {
        let report = try journal.replay(visit)
        if let damage = report.damage { throw LarderError(.damaged, "\(damage)", operation: "read journal") }
    }

    /// A damaged journal will not tell what was there before. Memory has all that was acknowledged, and the next checkpoint
    /// puts it into LevelDB, with what was refused.
    private func keepRefused(_ databases: [Database], _ last: UInt64, _ error: LarderError) {
        for database in databases { database.revertStateOnly() }
        lastSequence = max(lastSequence, last)
        owes.store(false, ordering: .releasing)
        requestCheckpoint()
        context.report(
            .error,
            "the journal is damaged (\(error)), and a commit failed: what is in memory goes into LevelDB, and writes that "
                + "were refused count")
    }
}
