import LarderPlatform

/// Replays the journal into memory when the larder is opened, and after a failed commit. At the opening it also handles
/// damage to the journal.
///
/// Thread-safe: immutable.
final class JournalRecovery: Sendable {
    let journal: CommitJournal
    private let table: DatabaseTable
    let context: EngineContext

    init(journal: CommitJournal, table: DatabaseTable, context: EngineContext) {
        (self.journal, self.table, self.context) = (journal, table, context)
    }

    /// Rolls the applied state back to the durable one: see ``CommitPipeline``.
    func rollBack(_ failing: () -> UInt64) {
        // Wait without any lock: otherwise event loops would wait for locks that are held here.
        journal.waitForReplay()
        // The table of databases stays locked: otherwise a database could be added and written to now, and its writes
        // would not be rolled back.
        table.withAll { all in
            for database in all { database.shards.lockAll() }
            defer { for database in all.reversed() { database.shards.unlockAll() } }
            rollBack(all, failed: failing())
        }
    }

    /// What was found in the journal.
    private struct Findings {
        let report: JournalReport
        let latestStored: Int64
        let unknownNames: Set<String>
        /// What is still to be replayed; nil if everything was applied.
        var rest: ReplayPlan?
    }

    /// Reads the journal, and replays it into the databases' memory, or leaves that to ``BackgroundReplay``. Called when
    /// the larder is opened, before anything else uses the databases.
    /// - Returns: what is still to be replayed; nil if everything was applied.
    func recover() throws(LarderError) -> ReplayPlan? {
        try journal.loadMarks()
        let found = try read()
        let report = found.report
        for name in found.unknownNames.sorted() {
            context.sequences.noteDropped(name)
            let isForeign = if case .foreign = DatabaseDirectory(context.directory + "/" + name) { true } else { false }
            context.report(
                isForeign ? .error : .info,
                "the journal has operations of database '\(name)', which no longer exists"
                    + (isForeign ? ", but another file or directory has its name; they are skipped" : ""),
                database: name)
        }
        context.timeKeeper.resume(fromStoredAt: found.latestStored)
        // Throw before anything is changed, so that the next start finds the same damage.
        if let damage = report.damage, context.options.onDamage == .fail { throw Self.refusal(of: damage) }
        context.sequences.wasCut.store(report.damage != nil || report.cut != nil, ordering: .relaxed)
        loadChanges(report)
        // If the journal is empty, it does not have the last sequence of an earlier process. Then other sources
        // determine the first sequence.
        context.sequences.begin(behind: report.lastSequence, now: context.time.now())
        journal.beginMarks(report)
        // If the journal has no files, its last sequence is unknown. It is not needed: a checkpoint had written
        // everything to LevelDB.
        if report.segments > 0 || report.damage != nil {
            context.larder.journalEnd.store(report.lastSequence, ordering: .relaxed)
            if report.damage != nil || report.cut != nil {
                // The ledger, an internal database, has the purges of tags. These purges must be known before other
                // databases are opened. A purge is synced before it is acknowledged, so only damage can lose purges,
                // not a power failure.
                try table.ledger?.load(table.all, afterLoss: report.damage?.concernsSynced == true)
                try openDatabasesThatNeedLostJournal(report)
            }
        }
        if let damage = report.damage { try setAside(damage, report) }
        if let cut = report.cut, cut.bytes > 0 {
            context.statistics.journalCutBytes.add(cut.bytes)
            context.report(
                .info, "the journal's last \(cut.bytes) bytes are an incomplete write: \(cut.reason)")
        }
        if found.rest == nil { noteReplayed(report) }
        journal.begin(behind: context.sequences.base)
        if report.operations > 0 { syncFound() }
        return found.rest
    }

    /// Reads the journal. Applies everything, unless the larder allows a replay in the background and the journal is
    /// intact. Then applies only the operations of the ledger.
    private func read() throws(LarderError) -> Findings {
        // Nothing else uses the databases yet. The locks keep each thread of the applier from evicting entries of the
        // other thread's shards.
        let databases = table.all
        for database in databases { database.shards.lockAll() }
        defer { for database in databases.reversed() { database.shards.unlockAll() } }
        guard context.options.onReplayFailure != nil, !databases.contains(where: \.durable.isEpochUnknown) else {
            return try apply(databases)
        }
        let survey = JournalSurvey(databases, noteEpoch: context.noteEpoch)
        let report = try journal.replay(survey.visit)
        survey.finish()
        var rest: ReplayPlan?
        if report.damage == nil, report.cut == nil {
            rest = ReplayPlan(parts: survey.parts, report: report)
        } else {
            _ = try apply(databases.filter { !$0.isLedger })
        }
        return Findings(
            report: report, latestStored: survey.latestStored, unknownNames: survey.unknownNames, rest: rest)
    }

    /// Applies the journal's operations of databases.
    private func apply(_ databases: [Database]) throws(LarderError) -> Findings {
        let byName = Dictionary(uniqueKeysWithValues: databases.map { ($0.name, $0) })
        let applier = JournalApplier(usesThreads: true, filling: databases, noteEpoch: context.noteEpoch) { byName[$0] }
        let report = Result { () throws(LarderError) in try journal.replay(applier.add) }
        applier.finish()
        return Findings(
            report: try report.get(), latestStored: applier.latestStored, unknownNames: applier.unknownNames)
    }

    /// Reports that all operations of the journal are applied, and requests a checkpoint.
    func noteReplayed(_ report: JournalReport) {
        guard report.operations > 0 else { return }
        context.report(
            .info, "replayed " + counted(report.operations, "operation") + ", \(report.bytes) bytes of the journal")
        journal.trigger.request()
    }

    /// Loads the valid part of the change log's files, so that followers (readers of the log) can continue where they
    /// were.
    private func loadChanges(_ report: JournalReport) {
        var circumstances: ChangeLogLoader.Circumstances?
        if report.damage == nil, let file = context.sequences.previous {
            circumstances = ChangeLogLoader.Circumstances(
                reserved: file.commitUnits, machine: context.options.machineStart,
                journalEnd: report.segments > 0 ? report.lastSequence : .max)
        }
        context.changeLog.load(circumstances) { [table] in table.find($0) }
    }

    /// Syncs the journal's segments (files) that an earlier process wrote, before their entries become visible. That
    /// process may have terminated before it had synced them.
    private func syncFound() {
        guard context.options.durability == .always else { return journal.wantSync() }
        do throws(LarderError) {
            try journal.sync()
        } catch {
            context.report(.error, "\(error.message); a machine failure may undo operations of the journal")
        }
    }

    /// Opens all databases, to find those whose LevelDB needs a lost part of the journal. Such a database is then
    /// handled as damaged. This must be done now, because the next start would not know of the loss.
    private func openDatabasesThatNeedLostJournal(_ report: JournalReport) throws(LarderError) {
        for database in table.all where database.exists {
            do throws(LarderError) {
                try database.prepare(forWriting: false)
            } catch {
                if database.life.needsMoreJournal { throw error }
                context.report(
                    .error,
                    "database '\(database.name)' cannot be opened, so it is unknown whether it needs the part of the "
                        + "journal that is lost: \(error)", database: database.name)
            }
        }
    }

    private func setAside(_ damage: JournalDamage, _ report: JournalReport) throws(LarderError) {
        let place = try DamagedFiles.place(for: "journal", context: context.larder)
        try LarderError.wrapping("set the journal aside") { () throws(FileError) in
            try journal.setAside(report, to: place)
        }
        context.statistics.journalDamages.add()
        context.reportDamage(
            "the journal is damaged: \(damage); the part after the damage was set aside at \(place). "
                + "Entries written there have their older values again, or are missing")
    }

    private static func refusal(of damage: JournalDamage) -> LarderError {
        LarderError(
            .damaged,
            "the journal is damaged: \(damage). The part before the damage can be used; nothing was changed. "
                + "To continue with that part, start larderd, or open the larder with CacheOptions.onDamage = .salvage",
            operation: "open larder")
    }
}
