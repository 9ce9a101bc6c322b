import LarderEngine

/// How the descriptors that the process may have open are divided between clients and what the larder needs: where clients
/// could take the last one, commits and checkpoints would fail.
struct DescriptorBudget: Equatable {
    /// Connections for which there is room.
    let clientsPossible: Int
    /// What is kept for everything else.
    let reserve: Int
    /// Databases for which the reserve is enough, and with which the next process can start. More are not to be created.
    let databasesPossible: Int

    /// Standard descriptors, the locks, the listening socket and the signals' pipe: 12. The journal's segments, its
    /// directory and what is being removed: 8. Files that are open for a moment, for POINTER, DAMAGED and the like: 8.
    private static let processDescriptors = 28
    /// Of one event loop: epoll and what wakes it, with one to spare.
    private static let loopDescriptors = 4
    /// Of one open database: LOCK, LOG, MANIFEST, its log, and a table that is written or read.
    private static let databaseDescriptors = 5
    /// With fewer clients nobody is served.
    private static let clientsMin = 4
    private static let databasesFew = 4

    /// - Parameters:
    ///   - limit: how many descriptors the process may have open.
    ///   - databases: how many databases there are.
    /// - Returns: nil where there is no room.
    init?(limit: Int, databases: Int, databasesMax: Int, openFilesMax: Int, threads: Int) {
        let base = Self.processDescriptors + Self.loopDescriptors * threads
        let least = Self.least(databases: databases, threads: threads)
        guard limit >= least + Self.clientsMin else { return nil }
        let full = base + Self.databaseDescriptors * max(databases, databasesMax) + openFilesMax
        // Where there is not enough for both, each has half, but the larder what it cannot do without, and room for a few
        // databases while a few clients are left.
        let few = min(base + Self.databaseDescriptors * Self.databasesFew, limit - 2 * Self.clientsMin)
        reserve = min(full, max(least, limit / 2, few))
        clientsPossible = limit - reserve
        let nextStart = (limit - Self.clientsMin - base) / Self.databaseDescriptors - 1
        databasesPossible = max(databases, min((reserve - base) / Self.databaseDescriptors, nextStart))
    }

    /// What the databases that are there need, or the first one, and one more.
    private static func least(databases: Int, threads: Int) -> Int {
        processDescriptors + loopDescriptors * threads + databaseDescriptors * (max(1, databases) + 1)
    }

    /// Raises the process' limit, and lowers that of clients to what is possible.
    static func take(
        for configuration: inout ServerConfiguration, log: Log
    ) throws(Server.Failure) -> DescriptorBudget {
        let limit = ProcessSettings.raiseDescriptorLimit()
        let names = (try? FileSystem.list(configuration.directory)) ?? []
        let databases = names.count { DatabaseName.isValid($0) }
        let threads = configuration.threads
        guard
            let budget = DescriptorBudget(
                limit: limit, databases: databases, databasesMax: configuration.engine.databasesMax,
                openFilesMax: configuration.engine.openFilesMax, threads: threads)
        else {
            let least = least(databases: databases, threads: threads) + clientsMin
            throw .descriptors(
                "the process may open \(limit) descriptors; with \(databases) databases and \(threads) event loop(s) "
                    + "it needs \(least) at least: raise the limit (ulimit -n)")
        }
        if configuration.engine.databasesMax > budget.databasesPossible {
            log.warning(
                "at most \(budget.databasesPossible) databases instead of \(configuration.engine.databasesMax) "
                    + "(--max-databases): "
                    + "more need more than the \(budget.reserve) descriptors that are "
                    + "kept for the larder's files, of \(limit) (ulimit -n)")
            configuration.engine.databasesMax = budget.databasesPossible
        }
        let asked = configuration.limits.clientsMax
        if asked > budget.clientsPossible {
            configuration.limits.clientsMax = budget.clientsPossible
            log.warning(
                "at most \(budget.clientsPossible) clients instead of \(asked) (--max-clients): the process may open "
                    + "\(limit) descriptors (ulimit -n), and \(budget.reserve) of them are kept for the larder's files")
        }
        return budget
    }
}
