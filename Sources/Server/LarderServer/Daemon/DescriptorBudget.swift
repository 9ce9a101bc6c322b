import LarderEngine
import LarderPlatform

/// Divides the descriptors that the process may open between clients and the larder. If clients could take the last
/// one, commits and checkpoints would fail.
struct DescriptorBudget: Equatable {
    /// The number of connections for which there is room.
    let clientsPossible: Int
    /// What is reserved for everything else.
    let reserve: Int
    /// How many databases the reserve is enough for, so that the next process can start with them. No more may be
    /// created.
    let databasesPossible: Int

    /// Standard descriptors, the locks, the listening socket and the signals' pipe: 12. The journal's segments, its
    /// directory and files that are being removed: 8. Files that are open for a moment, such as POINTER and DAMAGED: 8.
    private static let processDescriptors = 28
    /// For one event loop: epoll and its wake-up, with one to spare.
    private static let loopDescriptors = 4
    /// For one open database: LOCK, LOG, MANIFEST, its log, and a table that is written or read.
    private static let databaseDescriptors = 5
    /// With room for fewer clients, the daemon does not start.
    private static let clientsMin = 4
    private static let databasesFew = 4

    /// - Parameters:
    ///   - limit: how many descriptors the process may have open.
    ///   - databases: how many databases there are.
    /// - Returns: nil if there is no room.
    init?(limit: Int, databases: Int, databasesMax: Int, openFilesMax: Int, threads: Int) {
        let base = Self.processDescriptors + Self.loopDescriptors * threads
        let least = Self.least(databases: databases, threads: threads)
        guard limit >= least + Self.clientsMin else { return nil }
        let full = base + Self.databaseDescriptors * max(databases, databasesMax) + openFilesMax
        // If there is not enough for both, each gets half. But the larder gets what it cannot do without, and room for
        // a few databases while a few clients are left.
        let few = min(base + Self.databaseDescriptors * Self.databasesFew, limit - 2 * Self.clientsMin)
        reserve = min(full, max(least, limit / 2, few))
        clientsPossible = limit - reserve
        let nextStart = (limit - Self.clientsMin - base) / Self.databaseDescriptors - 1
        databasesPossible = max(databases, min((reserve - base) / Self.databaseDescriptors, nextStart))
    }

    /// Enough for all existing databases, or the first one, and one more.
    private static func least(databases: Int, threads: Int) -> Int {
        processDescriptors + loopDescriptors * threads + databaseDescriptors * (max(1, databases) + 1)
    }

    /// Raises the process' limit, and lowers the clients' limit to what is possible.
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
