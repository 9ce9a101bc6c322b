extension JournalRecovery {
    /// Reverts databases and their entries in memory to the durable state, which is read from the journal. Called with
    /// all their shard locks held. If the journal cannot be read now, the rollback is retried later: see
    /// ``CommitJournal/isRollbackPending``.
    /// - Parameter last: the sequence of the last commit unit that failed.
    func rollBack(_ databases: [Database], failed last: UInt64) {
        journal.rollBack { rollBackLocked(databases, last) }
    }

    private func rollBackLocked(_ databases: [Database], _ last: UInt64) {
        let byName = Dictionary(databases.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
        var isCleared = false
        do throws(LarderError) {
            // First read the journal without applying it: if it cannot be read, the entries stay in memory.
            try replay { _, _ in }
            isCleared = true
            for database in databases { database.revertToDurable() }
            let applier = JournalApplier(usesThreads: false) { byName[$0] }
            defer { applier.finish() }
            try replay(applier.add)
            journal.noteRolledBack()
        } catch {
            // Whether memory still has every acknowledged entry that LevelDB lacks. The purge of a database, for
            // example, may have dropped some.
            let isWhole = !isCleared && databases.allSatisfy(\.isMemoryWhole)
            if isWhole, error.code == .damaged { return keepRefused(databases, last, error) }
            for database in databases { database.revertIncompletely(isCleared: isCleared, error) }
            // Log the error once, not at every attempt.
            context.report(
                journal.notePendingRollback() ? .debug : .error,
                "the journal cannot be read after a failed commit (\(error)): until it can be read, writes are "
                    + "refused, and databases with changes that are not in LevelDB yet return errors")
        }
    }

    /// Reads the journal like ``Journal/replay(known:onOpened:_:)``, but throws if it is damaged.
    private func replay(_ visit: JournalVisit) throws(LarderError) {
        let report = try journal.replayLocked(visit)
        if let damage = report.damage { throw LarderError(.damaged, "\(damage)", operation: "read journal") }
    }

    /// Keeps the entries of the failed commits in memory, because the journal is damaged and the previous entries
    /// cannot be read from it. Memory has every acknowledged entry, so the next checkpoint writes all of them to
    /// LevelDB, together with those of the failed commits.
    private func keepRefused(_ databases: [Database], _ last: UInt64, _ error: LarderError) {
        for database in databases { database.revertStateOnly() }
        journal.noteKept(last)
        journal.noteRolledBack()
        journal.trigger.request()
        context.report(
            .error,
            "the journal is damaged (\(error)), and a commit failed: all entries in memory are written to LevelDB, "
                + "including those of the failed commit, so its refused writes take effect")
    }
}
