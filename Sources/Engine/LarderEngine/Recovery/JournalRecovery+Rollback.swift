extension JournalRecovery {
    /// Reverts databases and their entries to the durable state, which the journal contains. Called with all their
    /// shard locks held. If the journal cannot be read now, the rollback is done later: ``owesRollback``.
    /// - Parameter last: the last sequence that failed.
    func rollBack(_ databases: [Database], failed last: UInt64) {
        journal.rollBack { rollBackLocked(databases, last) }
    }

    private func rollBackLocked(_ databases: [Database], _ last: UInt64) {
        let byName = Dictionary(databases.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
        var isCleared = false
        do throws(LarderError) {
            // A dry run first, so that an unreadable journal does not cost the entries in memory.
            try replay { _, _ in }
            isCleared = true
            for database in databases { database.revertToDurable() }
            let applier = JournalApplier(usesThreads: false) { byName[$0] }
            defer { applier.finish() }
            try replay(applier.add)
            journal.noteRolledBack()
        } catch {
            // Not whole if a change of a whole database has already dropped entries from memory.
            let isWhole = !isCleared && databases.allSatisfy(\.isMemoryWhole)
            if isWhole, error.code == .damaged { return keepRefused(databases, last, error) }
            for database in databases { database.revertIncompletely(isCleared: isCleared, error) }
            // Report it once, not at every attempt.
            context.report(
                journal.noteOwed() ? .debug : .error,
                "the journal cannot be read after a failed commit (\(error)): until it can, nothing is written, and "
                    + "databases that were written to fail")
        }
    }

    /// Like ``Journal/replay(known:_:)``, but throws if the journal is damaged.
    private func replay(_ visit: JournalVisit) throws(LarderError) {
        let report = try journal.replayLocked(visit)
        if let damage = report.damage { throw LarderError(.damaged, "\(damage)", operation: "read journal") }
    }

    /// Keeps the entries of the refused commits, because the journal, which is damaged, does not have the previous
    /// entries. Memory has every acknowledged entry. The next checkpoint writes all of them to LevelDB.
    private func keepRefused(_ databases: [Database], _ last: UInt64, _ error: LarderError) {
        for database in databases { database.revertStateOnly() }
        journal.noteKept(last)
        journal.noteRolledBack()
        journal.trigger.request()
        context.report(
            .error,
            "the journal is damaged (\(error)), and a commit failed: LevelDB gets the entries in memory, so that refused "
                + "writes take effect")
    }
}
