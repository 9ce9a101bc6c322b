import LarderPlatform

/// Checking and repairing a larder's files.
extension Engine {
    /// Checks all files of a larder that no process has open. Prevents other processes from opening the larder during
    /// the check. Changes nothing.
    /// - Parameter indexMaker: see ``EngineOptions/indexMaker``; nil: the indexes are not checked.
    /// - Throws: ``LarderError/Code/larderHeld`` if a process has the larder open; ``LarderError/Code/invalidArgument``
    ///   if the directory is not that of a larder.
    package static func check(
        _ directory: String, database name: String? = nil, indexMaker: (any IndexMaker)? = nil,
        adding others: (String, inout CheckReport) -> Void = { _, _ in },
        onProgress: @escaping (_ done: Int, _ total: Int) -> Void = { _, _ in },
        shouldStop: @escaping () -> Bool = { false }
    ) throws(LarderError) -> CheckReport {
        try LarderCheck.checkIsLarder(directory)
        let lock = try LarderLock.reading(directory)
        var report = try LarderCheck.run(
            directory, database: name, accessOf: directory, indexMaker: indexMaker, onProgress: onProgress,
            shouldStop: shouldStop)
        others(directory, &report)
        _ = consume lock
        return report
    }

    /// Whether a directory may be that of a larder.
    package static func isLarder(_ directory: String) -> Bool { (try? LarderCheck.checkIsLarder(directory)) != nil }

    /// Checks all files of this larder while it is in use. Checks a copy of the files as of one instant.
    /// - Parameter names: as for ``withImage(adding:for:leavingOut:_:)``.
    package func check(
        database name: String? = nil, copying names: [String],
        adding others: (String, inout CheckReport) -> Void = { _, _ in },
        onProgress: @escaping (_ done: Int, _ total: Int) -> Void = { _, _ in }
    ) throws -> CheckReport {
        var left: [LarderError] = []
        func look(_ image: String) throws(LarderError) -> CheckReport {
            // A database that could not be copied must not be reported as missing.
            let wanted = left.contains { $0.database == name } ? nil : name
            var report = try LarderCheck.run(
                image, database: wanted, accessOf: directory, indexMaker: options.indexMaker, onProgress: onProgress,
                shouldStop: { [self] in !isUsable })
            others(image, &report)
            return report
        }
        var report = try withImage(adding: names, for: "check", leavingOut: { left.append($0) }, look)
        let lacking = left.compactMap { $0.database.map(LarderCheck.missingNote) }
        report.notes.removeAll(where: lacking.contains)
        for error in left where name == nil || error.database == name { LarderCheck.add(uncopied: error, to: &report) }
        return report
    }

    /// Repairs the damage that a check has found, as far as possible: salvages damaged databases, completes expiry
    /// indexes that lack keys, and begins to build indexes anew that lack hints. Keeps all readable entries.
    /// - Returns: the error messages, one for each repair that failed.
    package func repair(_ report: CheckReport) -> [String] {
        var failures: [String] = []
        for database in [ledger.database].filter(\.exists) + databases {
            let place = CheckProblem.place(ofDatabase: database.name)
            do throws(LarderError) {
                // If damage keeps the database from being opened, this call salvages it.
                let salvages = statistics.salvages.read()
                try database.prepare(forWriting: false)
                if report.damaged.contains(place), statistics.salvages.read() == salvages {
                    try salvage(database, place, report)
                }
                if report.unindexed.contains(place) { try makeIndex(of: database) }
                if report.unhinted.contains(place) { try database.indexes.buildAnew() }
            } catch {
                failures.append("\(place): \(error)")
            }
        }
        do throws(LarderError) {
            try save()
        } catch {
            failures.append("\(error)")
        }
        return failures
    }

    private func salvage(_ database: Database, _ place: String, _ report: CheckReport) throws(LarderError) {
        // Do nothing if the database has no files any more.
        guard let store = database.appliedState.store, store.isMade else { return }
        let what = report.problems.first { $0.place == place }?.what ?? "a check has found damage"
        let damage = LarderError(.damaged, what, operation: "check", database: database.name)
        // If another thread is already salvaging the database, wait for its result.
        var isWaiting = false
        while try database.salvage(store, damage) == nil, database.appliedState.store === store {
            if !isWaiting { context.report(.info, "the repair of \(place) waits for a salvage that has begun") }
            isWaiting = true
            WorkThread.sleep(nanoseconds: 10_000_000)
        }
    }

    private func makeIndex(of database: Database) throws(LarderError) {
        let state = database.appliedState
        guard let store = state.store, store.isMade else { return }
        var sweep = FullSweep(indexingFor: state.policyChanges, all: true)
        while !sweep.isOver { _ = try sweep.step(database, store) }
    }

    /// Opens a larder that no process has open, and repairs the damage that a check has found.
    /// - Returns: the error messages, one for each repair that failed.
    package static func repair(
        _ directory: String, _ report: CheckReport, options: EngineOptions,
        time: any TimeSource = SystemTimeSource()
    ) throws(LarderError) -> [String] {
        var options = options
        options.onDamage = .salvage
        options.backgroundMaintenance = false
        let engine = try open(directory, options: options, time: time)
        defer { engine.shutdown() }
        return engine.repair(report)
    }
}
