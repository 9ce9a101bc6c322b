import Platform

// What a database needs of the larder above it.

/// The databases that there are. Thread-safe.
protocol DatabaseRoster: AnyObject, Sendable {
    /// Held while a database's files are created, so that the limit on their number is kept. After a database's
    /// `openLock`, before any shard's lock.
    var creation: Lock { get }
    /// All databases, in the order in which their locks are to be taken.
    var all: [Database] { get }
    /// Forgets a database, unless another has taken its name.
    func remove(_ database: Database)
}

/// What a database has the checkpointer do. Thread-safe; what may take a checkpoint may block.
protocol Checkpointing: AnyObject, Sendable {
    /// Whether so much waits for LevelDB that writers should assist.
    var isFull: Bool { get }
    /// As ``isFull``, for those who are about to store a long record.
    var isFullForLong: Bool { get }
    /// As ``isFull``, for those who are about to build a long value.
    var isFullForBuilding: Bool { get }
    /// How many failed commits were rolled back. With a shard lock held it stands still.
    var rollbackCount: UInt64 { get }

    /// Writes a checkpoint on this thread, or waits for the one under way, where ``isFull``.
    /// - Returns: false when there is no room and the checkpoint failed.
    func assist() -> Bool
    /// As ``assist()``, where ``isFullForLong``.
    func assistForLong() -> Bool
    /// As ``assist()``, where ``isFullForBuilding``.
    func assistForBuilding() -> Bool
    /// Puts everything that is committed into LevelDB.
    func checkpoint() throws(LarderError)
    /// Puts what is committed of one database into LevelDB. What is written meanwhile may stay in memory.
    /// - Returns: what was let go because it is expired.
    @discardableResult
    func flush(_ database: Database) throws(LarderError) -> PurgeReport
    /// Runs `body` while no checkpoint is under way.
    func withTurn<Result>(_ body: () throws(LarderError) -> Result) throws(LarderError) -> Result
    /// Runs `body`, which does not fail, while no checkpoint is under way.
    func holdingTurn(_ body: () -> Void)
}
