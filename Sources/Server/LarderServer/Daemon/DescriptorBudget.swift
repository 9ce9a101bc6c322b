import LarderEngine
import LarderPlatform

/// Divides the file descriptors of the process between clients and the larder. Without this, clients could use the last
/// descriptor, and commits and checkpoints would fail.
struct DescriptorBudget: Equatable {
    /// The maximum number of descriptors that the process may open.
    let limit: Int
    /// The number of descriptors for clients and for the connections to origins.
    let forConnections: Int
    /// The number of descriptors that are reserved for everything except connections.
    let reserve: Int
    /// The maximum number of databases for which the reserved descriptors are enough, both now and when the daemon
    /// starts again.
    let databasesPossible: Int

    /// The descriptors that do not depend on loops and databases. 12 are for standard input and output, locks, the
    /// listening socket and the pipe for signals. 8 are for the journal's segments and directory, and files that are
    /// being removed. 8 are for files that are open only briefly, such as POINTER and DAMAGED.
    private static let processDescriptors = 28
    /// For each event loop: epoll, the descriptor that wakes it, and two in reserve.
    private static let loopDescriptors = 4
    /// For each open database: LevelDB's LOCK, LOG, MANIFEST and log file, and a table that is being written or read.
    private static let databaseDescriptors = 5
    /// LevelDB maps tables into memory, which takes no descriptors. If there are too many to map, it takes at most a fifth
    /// of all descriptors for the others.
    private static let tableShare = 5
    /// The number of clients that must be possible. With too few descriptors for them, the daemon does not start.
    private static let clientsMin = 4
    private static let databasesFew = 4

    /// - Parameter databases: the number of existing databases.
    /// - Returns: nil if there are not enough descriptors for the existing databases and a few clients.
    init?(limit: Int, databases: Int, databasesMax: Int, openFilesMax: Int, threads: Int) {
        let base = Self.processDescriptors + Self.loopDescriptors * threads
        let least = Self.least(databases: databases, threads: threads)
        guard limit >= least + Self.clientsMin else { return nil }
        let tables = min(openFilesMax, limit / Self.tableShare)
        let full = base + Self.databaseDescriptors * max(databases, databasesMax) + tables
        // If there are not enough descriptors for everything, the larder and the clients get half each. The larder gets
        // more if it needs more for the existing databases (`least`), or for a few databases (`few`). `few` leaves
        // descriptors for some clients.
        let few = min(base + Self.databaseDescriptors * Self.databasesFew, limit - 2 * Self.clientsMin)
        reserve = min(full, max(least, limit / 2, few))
        self.limit = limit
        forConnections = limit - reserve
        let nextStart = (limit - Self.clientsMin - base) / Self.databaseDescriptors - 1
        databasesPossible = max(databases, min((reserve - base) / Self.databaseDescriptors, nextStart))
    }

    /// Returns the smallest possible reserve: for the existing databases (at least one), and for one more database.
    private static func least(databases: Int, threads: Int) -> Int {
        processDescriptors + loopDescriptors * threads + databaseDescriptors * (max(1, databases) + 1)
    }

    /// Raises the process's limit of descriptors. If it is still too low, reduces the limit of databases.
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
                "the process may open \(limit) descriptors; with \(counted(databases, "database")) and "
                    + "\(counted(threads, "event loop")), at least \(least) are needed: raise the limit (ulimit -n)")
        }
        if configuration.engine.databasesMax > budget.databasesPossible {
            log.warning(
                "at most \(budget.databasesPossible) databases instead of \(configuration.engine.databasesMax) "
                    + "(--max-databases): the larder's files may use \(budget.reserve) of \(limit) descriptors "
                    + "(ulimit -n), and more databases would need more")
            configuration.engine.databasesMax = budget.databasesPossible
        }
        return budget
    }
}
