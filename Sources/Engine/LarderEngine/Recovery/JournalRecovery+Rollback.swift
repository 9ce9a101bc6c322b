extension JournalRecovery {
    /// Reverts databases to the durable state: their states, and the entries in the journal. Called with all their
    /// shard locks held. If the journal cannot be read for now, the rollback is done later: ``owesRollback``.
    /// - Parameter last: the last sequence that failed.
    func rollBack(_ databases: [Database], failed last: UInt64) {
        journal.rollBack { rollBackLocked(databases, last) }
    }

    private func rollBackLocked(_ databases: [Database], _ last: UInt64) {
        let byName = Dictionary(databases.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
        var isCleared = false
        do throws(LarderError) {
            // A dry run first: an unreadable journal must not cost the entries in memory.
            try replay { _, _ in }
            isCleared = true
            for database in databases { database.revertToDurable() }
            let applier = JournalApplier(usesThreads: false) { byName[$0] }
            defer { applier.finish() }
            try replay(applier.add)
            journal.noteRolledBack()
        } catch {
            // A change of a whole database has already dropped entries from memory.
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

    /// ``Journal/replay(known:_:)`` with damage as an error.
    private func replay(_ visit: JournalVisit) throws(LarderError) {
        let report = try journal.replayLocked(visit)
        if let damage = report.damage { throw LarderError(.damaged, "\(damage)", operation: "read journal") }
    }

    /// Keeps the refused entries, because a damaged journal does not have the previous ones. Memory has every
    /// acknowledged entry, and the next checkpoint writes it to LevelDB, together with the refused ones.
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
