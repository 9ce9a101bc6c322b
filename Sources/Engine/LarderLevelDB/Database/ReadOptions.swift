/// Options of a read.
package struct ReadOptions: Sendable {
    /// Verifies the checksum of every block read from a file. The default is true: without it a flipped bit is returned
    /// as data. Blocks in the cache were verified only if the read that loaded them requested it.
    package var verifyChecksums = true

    /// Keeps the blocks read in the cache. The default is true; false suits a full scan, which would evict the blocks
    /// in use.
    package var fillCache = true

    /// Reads the state of this snapshot. The default is nil: the newest state. A snapshot of another database is
    /// `.invalidArgument`, a closed one `.closed`.
    package var snapshot: Snapshot?

    package init(verifyChecksums: Bool = true, fillCache: Bool = true, snapshot: Snapshot? = nil) {
        self.verifyChecksums = verifyChecksums
        self.fillCache = fillCache
        self.snapshot = snapshot
    }
}
