import LarderEngine
import LarderPlatform

/// Divides the descriptors of the process between clients and the larder. If clients could use the last descriptor,
/// commits and checkpoints would fail.
struct DescriptorBudget: Equatable {
    /// The number of connections that are possible.
    let clientsPossible: Int
    /// The number of descriptors reserved for everything else.
    let reserve: Int
    /// The most databases that may exist. The reserve is enough for them, so that the next process can start with them
    /// too.
    let databasesPossible: Int

    /// Standard descriptors, the locks, the listening socket and the signals' pipe: 12. The journal's segments, its
    /// directory, and files being removed: 8. Files that are open briefly, such as POINTER and DAMAGED: 8.
    private static let processDescriptors = 28
    /// For one event loop: epoll, its wake-up descriptor, and one to spare.
    private static let loopDescriptors = 4
    /// For one open database: LOCK, LOG, MANIFEST, its log, and a table being written or read.
    private static let databaseDescriptors = 5
    /// The daemon does not start with fewer clients.
    private static let clientsMin = 4
    private static let databasesFew = 4

    /// - Parameters:
    ///   - limit: the most open descriptors of the process.
    ///   - databases: the number of databases.
    /// - Returns: nil if there are too few descriptors.
    init?(limit: Int, databases: Int, databasesMax: Int, openFilesMax: Int, threads: Int) {
        let base = Self.processDescriptors + Self.loopDescriptors * threads
        let least = Self.least(databases: databases, threads: threads)
        guard limit >= least + Self.clientsMin else { return nil }
        let full = base + Self.databaseDescriptors * max(databases, databasesMax) + openFilesMax
        // If there are not enough descriptors for both, the larder and the clients get half each. The larder gets more
        // if it needs more for its minimum, or for a few databases while a few clients can still connect.
        let few = min(base + Self.databaseDescriptors * Self.databasesFew, limit - 2 * Self.clientsMin)
        reserve = min(full, max(least, limit / 2, few))
        clientsPossible = limit - reserve
        let nextStart = (limit - Self.clientsMin - base) / Self.databaseDescriptors - 1
        databasesPossible = max(databases, min((reserve - base) / Self.databaseDescriptors, nextStart))
    }

    /// The minimum reserve: enough for all existing databases (at least one), and one more.
    private static func least(databases: Int, threads: Int) -> Int {
        processDescriptors + loopDescriptors * threads + databaseDescriptors * (max(1, databases) + 1)
    }

    /// Raises the process' limit, and lowers the limit of clients accordingly.
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
                "the process may open \(limit) descriptors; with \(databases) databases and \(threads) event loop(s), "
                    + "at least \(least) are needed: raise the limit (ulimit -n)")
        }
        if configuration.engine.databasesMax > budget.databasesPossible {
            log.warning(
                "at most \(budget.databasesPossible) databases instead of \(configuration.engine.databasesMax) "
                    + "(--max-databases): "
                    + "more would need more than the \(budget.reserve) descriptors "
                    + "reserved for the larder's files, of \(limit) (ulimit -n)")
            configuration.engine.databasesMax = budget.databasesPossible
        }
        let asked = configuration.limits.clientsMax
        if asked > budget.clientsPossible {
            configuration.limits.clientsMax = budget.clientsPossible
            log.warning(
                "at most \(budget.clientsPossible) clients instead of \(asked) (--max-clients): the process may open "
                    + "\(limit) descriptors (ulimit -n), of which \(budget.reserve) are reserved for the larder's files"
            )
        }
        return budget
    }
}
