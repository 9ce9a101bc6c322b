import LarderEngine

/// A read-only view of a database at one instant, with all reading calls of ``Cache``.
///
/// - It freezes data, not time: entries that expire are no longer returned. Changes of the policy take effect.
/// - It keeps the larder open, and old files on the disk, until it is closed or released.
/// - After a purge or deletion of the database its calls throw ``LarderError/Code/purged`` or
///   ``LarderError/Code/deleted``; after a failed write that made the larder reopen the database,
///   ``LarderError/Code/invalidated``.
///
/// Thread-safe.
public final class CacheSnapshot: CacheReading {
    /// The source of the reading calls.
    public let source: CacheSource

    init(source: CacheSource) { self.source = source }

    /// Releases the larder and its files. Idempotent; later calls throw ``LarderError/Code/closed``.
    public func close() { source.close() }
}
