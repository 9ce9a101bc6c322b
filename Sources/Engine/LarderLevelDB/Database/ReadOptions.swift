/// Options of a read.
package struct ReadOptions: Sendable {
    /// Whether to verify the checksum of every block that is read from a file. The default is true: without
    /// verification, a flipped bit would be returned as data. Blocks in the cache are not verified again; they were
    /// verified only if the read that loaded them requested it.
    package var verifyChecksums = true

    /// Whether to add the blocks that are read to the cache. The default is true. Use false for a full scan, which
    /// would evict frequently used blocks.
    package var fillCache = true

    /// The snapshot to read. The default is nil: the newest state. With a snapshot of another database a read throws
    /// `.invalidArgument`, and with a closed snapshot `.closed`.
    package var snapshot: Snapshot?

    package init(verifyChecksums: Bool = true, fillCache: Bool = true, snapshot: Snapshot? = nil) {
        self.verifyChecksums = verifyChecksums
        self.fillCache = fillCache
        self.snapshot = snapshot
    }
}
