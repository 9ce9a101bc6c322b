import LarderEngine

/// A read-only view of a database as it was at one instant, with every reading call that ``Cache`` has.
///
/// - It freezes data, not time: it does not return entries that expire meanwhile. Changes of the policy take effect.
/// - It keeps the larder open, and old files on the disk, until it is closed or released.
/// - Once the database was purged or deleted, its calls throw ``LarderError/Code/purged`` or
///   ``LarderError/Code/deleted``; after a failed write that made the larder reopen the database,
///   ``LarderError/Code/invalidated``.
///
/// Thread-safe.
public final class CacheSnapshot: CacheReading {
    /// The source of the reading calls.
    public let source: CacheSource

    init(source: CacheSource) { self.source = source }

    /// Releases the larder and its files. Idempotent; afterwards every call throws ``LarderError/Code/closed``.
    public func close() { source.close() }
}
