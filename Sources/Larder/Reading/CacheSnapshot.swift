import LarderEngine

/// A read-only view of a database at one instant, with all reading calls of ``Cache``.
///
/// - Later writes are not visible, but time passes: entries that expire are no longer returned, and changes of the
///   policy take effect.
/// - It keeps the larder open, and old files on the disk, until it is closed or released.
/// - After a purge or deletion of the database, the calls of the snapshot throw ``LarderError/Code/purged`` or
///   ``LarderError/Code/deleted``. After a failed write that made the larder reopen the database, they throw
///   ``LarderError/Code/invalidated``.
///
/// Thread-safe.
public final class CacheSnapshot: CacheReading {
    /// The object through which the reading calls access the database.
    public let source: CacheSource

    init(source: CacheSource) { self.source = source }

    /// Releases the larder and its files. Idempotent; later calls throw ``LarderError/Code/closed``.
    public func close() { source.close() }
}
