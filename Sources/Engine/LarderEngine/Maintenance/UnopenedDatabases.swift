import LarderPlatform

/// Opens databases that have not been used since the start, so that the sweep finds remains of old entries in them.
/// Opens one per round, and only while the larder is idle, so that readers and writers are not delayed.
///
/// Each database is examined once. If its files are too small to matter, it stays closed.
///
/// Confined to the thread that maintains the larder.
struct UnopenedDatabases {
    /// The databases that were examined.
    private var seen: Set<ObjectIdentifier> = []
    /// The last commit unit, and the time since which no other was committed.
    private var lastUnit: UInt64 = 0
    private var unchangedSince: Int64?

    /// The most databases measured per round.
    private static let databasesPerRound = 16

    /// - Parameters:
    ///   - lastUnit: the last commit unit of the larder.
    ///   - isBusy: whether the sweep has more to do now.
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
                // Otherwise another thread is opening it.
                guard try database.prepareUnlessBusy() else { continue }
                context.report(.debug, "database '\(database.name)' was opened to be swept")
            } catch {
                context.report(.debug, "database '\(database.name)' was not opened to be swept: \(error)")
            }
            return
        }
    }
}
