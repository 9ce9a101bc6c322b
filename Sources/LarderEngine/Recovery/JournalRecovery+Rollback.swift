extension JournalRecovery {
    /// Takes databases back to what is durable: their state, and the entries that the journal has. Called with all their
    /// shard locks held. Where the journal cannot be read for now it is still to be done: ``owesRollback``.
    /// - Parameter last: the last sequence that failed.
    func rollBack(_ databases: [Database], failed last: UInt64) {
        journal.rollBack { rollBackLocked(databases, last) }
    }

    private func rollBackLocked(_ databases: [Database], _ last: UInt64) {
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
            journal.noteRolledBack()
        } catch {
            // Of what was changed as a whole memory has let go already.
            let isWhole = !isCleared && databases.allSatisfy(\.isMemoryWhole)
            if isWhole, error.code == .damaged { return keepRefused(databases, last, error) }
            for database in databases { database.revertIncompletely(isCleared: isCleared, error) }
            // Said once, not with every attempt.
            context.report(
                journal.noteOwed() ? .debug : .error,
                "the journal cannot be read after a failed commit (\(error)): until it can, nothing is written, and "
                    + "databases that were written to answer with errors")
        }
    }

    /// As ``Journal/replay(known:_:)``, where damage is an error.
    private func replay(_ visit: JournalVisit) throws(LarderError) {
        let report = try journal.replayLocked(visit)
        if let damage = report.damage { throw LarderError(.damaged, "\(damage)", operation: "read journal") }
    }

    /// A damaged journal will not tell what was there before. Memory has all that was acknowledged, and the next checkpoint
    /// puts it into LevelDB, with what was refused.
    private func keepRefused(_ databases: [Database], _ last: UInt64, _ error: LarderError) {
        for database in databases { database.revertStateOnly() }
        journal.noteKept(last)
        journal.noteRolledBack()
        journal.trigger.request()
        context.report(
            .error,
            "the journal is damaged (\(error)), and a commit failed: what is in memory goes into LevelDB, and writes that "
                + "were refused count")
    }
}
