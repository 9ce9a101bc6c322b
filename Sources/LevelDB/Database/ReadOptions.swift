/// How a read is done.
package struct ReadOptions: Sendable {
    /// Checks the checksum of every block that is read from a file. The default is true: without it a flipped bit is
    /// handed out as data. Blocks in the cache were checked when they came in, if the read that brought them asked.
    package var verifyChecksums = true

    /// Keeps the blocks that are read in the cache. The default is true; false suits a scan over everything, which
    /// would push out what is in use.
    package var fillCache = true

    /// Reads what was there when the snapshot was taken. The default is nil: the newest. A snapshot of another
    /// database is `.invalidArgument`, a closed one `.closed`.
    package var snapshot: Snapshot?

    package init(verifyChecksums: Bool = true, fillCache: Bool = true, snapshot: Snapshot? = nil) {
        self.verifyChecksums = verifyChecksums
        self.fillCache = fillCache
        self.snapshot = snapshot
    }
}
