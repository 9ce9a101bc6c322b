import LarderPlatform

// The parts of the larder that a database depends on.

/// The databases of a larder. Thread-safe.
protocol DatabaseRoster: AnyObject, Sendable {
    /// Held while a database's files are created, to enforce the limit on the number of databases. Taken after a
    /// database's `openLock`, before any shard's lock.
    var creation: Lock { get }
    /// All databases, in the order in which their locks must be taken.
    var all: [Database] { get }
    /// Removes a database, unless another database has the name by now.
    func remove(_ database: Database)
}

/// The checkpointer's operations for a database. Thread-safe; operations that may run a checkpoint may block.
protocol Checkpointing: AnyObject, Sendable {
    /// Whether writers should help, because too many bytes wait to be written to LevelDB.
    func isFull(for write: PendingWrite) -> Bool
    /// The number of failed commits that were rolled back. It does not change while a shard lock is held.
    var rollbackCount: UInt64 { get }

    /// Called if ``isFull(for:)`` is true: runs a checkpoint on this thread, or waits for the running one.
    /// - Returns: false if the checkpoint failed.
    func assist(for write: PendingWrite) -> Bool
    /// Runs a checkpoint: writes all committed entries to LevelDB.
    func checkpoint() throws(LarderError)
    /// Writes the committed entries of one database to LevelDB. Entries written during the call may stay in memory.
    /// - Returns: the entries that were dropped because they had expired.
    @discardableResult
    func flush(_ database: Database) throws(LarderError) -> PurgeReport
    /// Like ``flush(_:)``, but does nothing while a checkpoint or another flush is running.
    /// - Returns: nil if nothing was done.
    func flushIfIdle(_ database: Database) throws(LarderError) -> PurgeReport?
    /// Runs `body` while no checkpoint is under way.
    func withTurn<Result, Failure: Error>(_ body: () throws(Failure) -> Result) throws(Failure) -> Result
}
