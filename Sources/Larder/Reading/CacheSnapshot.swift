import LarderEngine

/// A read-only view of a database as it was at one instant, with every reading call that ``Cache`` has.
///
/// - It freezes data, not time: an entry that expires meanwhile is not served from it. Policy changes count.
/// - It keeps the larder open, and old files on the disk, until it is closed or gone.
/// - Once the database was purged or deleted, its calls throw ``LarderError/Code/purged`` or
///   ``LarderError/Code/deleted``; after a failed write that made the larder reopen the database,
///   ``LarderError/Code/invalidated``.
///
/// Thread-safe.
public final class CacheSnapshot: CacheReading {
    /// Where the reading calls read from.
    public let source: CacheSource

    init(source: CacheSource) { self.source = source }

    /// Lets go of the larder and of the files. Idempotent; afterwards every call throws ``LarderError/Code/closed``.
    public func close() { source.close() }
}
