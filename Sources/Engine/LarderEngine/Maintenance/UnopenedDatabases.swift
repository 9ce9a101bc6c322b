import LarderPlatform

/// Opens databases that nobody has used since the start, so that the sweep looks at what is left in them of former entries.
/// While the larder is at rest, and one in a round: whoever reads or writes does not notice.
///
/// Each is looked at once. Those whose files are too small to matter stay closed.
///
/// Confined to the thread that maintains the larder.
struct UnopenedDatabases {
    /// Those that were looked at.
    private var seen: Set<ObjectIdentifier> = []
    /// The last commit unit, and since when there was no other.
    private var lastUnit: UInt64 = 0
    private var unchangedSince: Int64?

    /// So many files are measured in a round at most.
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
                // Else somebody else is opening it.
                guard try database.prepareUnlessBusy() else { continue }
                context.report(.debug, "database '\(database.name)' was opened to be swept")
            } catch {
                context.report(.debug, "database '\(database.name)' was not opened to be swept: \(error)")
            }
            return
        }
    }
}
