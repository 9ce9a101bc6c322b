/// Options of a read.
package struct ReadOptions: Sendable {
    /// Verifies the checksum of every block that is read from a file. The default is true: without it a flipped bit
    /// would be returned as data. Blocks in the cache are not verified again; they were verified only if the read that
    /// loaded them requested it.
    package var verifyChecksums = true

    /// Keeps the blocks that are read in the cache. The default is true. Use false for a full scan, which would evict
    /// frequently used blocks.
    package var fillCache = true

    /// Reads the state of this snapshot. The default is nil: the newest state. A snapshot of another database throws
    /// `.invalidArgument`, and a closed snapshot throws `.closed`.
    package var snapshot: Snapshot?

    package init(verifyChecksums: Bool = true, fillCache: Bool = true, snapshot: Snapshot? = nil) {
        self.verifyChecksums = verifyChecksums
        self.fillCache = fillCache
        self.snapshot = snapshot
    }
}
