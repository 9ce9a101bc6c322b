import LarderPlatform

/// Opens databases that have not been used since the start, so that the sweep can remove their expired entries. Opens
/// at most one per round, and only while the larder is idle, so as not to delay readers and writers.
///
/// Examines each database once. If its files are too small to matter, it stays closed.
///
/// Used only by the maintenance thread.
struct UnopenedDatabases {
    /// The databases that have been examined.
    private var seen: Set<ObjectIdentifier> = []
    /// The larder's last commit unit at the last call, and the time of its last change, in monotonic milliseconds.
    private var lastUnit: UInt64 = 0
    private var unchangedSince: Int64?

    /// The maximum number of databases whose files are measured per round.
    private static let databasesPerRound = 16

    /// - Parameters:
    ///   - lastUnit: the last commit unit of the larder.
    ///   - isBusy: whether the sweep has more expired entries to remove now.
    mutating func look(_ databases: [Database], lastUnit: UInt64, isBusy: Bool, _ context: EngineContext) {
        let monotonic = context.time.monotonic()
        if unchangedSince == nil || lastUnit != self.lastUnit {
            (self.lastUnit, unchangedSince) = (lastUnit, monotonic)
        }
        guard let since = unchangedSince, monotonic - since >= Sweeper.restMilliseconds, !isBusy else { return }
        let closed = databases.filter { $0.durableState.isClosed && !seen.contains(ObjectIdentifier($0)) }
        for database in closed.prefix(Self.databasesPerRound) {
            seen.insert(ObjectIdentifier(database))
            let least = 2 * Sweeper.leastBytes(sharedBy: databases.count, context)
            guard FileSystem.size(database.files.directory) >= least else { continue }
            do throws(LarderError) {
                // If this returns false, another thread is opening the database.
                guard try database.prepareUnlessBusy() else { continue }
                context.report(.debug, "database '\(database.name)' was opened to be swept")
            } catch {
                context.report(.debug, "database '\(database.name)' was not opened to be swept: \(error)")
            }
            return
        }
    }
}
