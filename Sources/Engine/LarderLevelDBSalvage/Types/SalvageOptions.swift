/// The caller's knowledge of the files, and the wanted result.
package struct SalvageOptions: Sendable {
    /// For each log by number (123 of `000123.log`), how many of its bytes are known to be synced.
    ///
    /// Bad bytes before that are damage; so is a log that is shorter, or gone. After that a log ends at the first bad
    /// byte, which is not damage: the machine stopped while it was written. For a log that is not listed, a bad end is
    /// accepted only if the file ends within its last record, or has only zeros after it. Any other bad bytes are
    /// damage.
    package var syncedLogBytes: [UInt64: Int] = [:]

    /// Whether the keys of every batch ever written ascend strictly, not counting those with ``ignoredFirstBytes``. The
    /// default is false.
    ///
    /// If so, a bad piece of a large batch costs the keys between its readable neighbours. Otherwise it may have held
    /// any key.
    package var batchesAreSorted = false

    /// Keys that begin with these bytes are neither returned nor reported. The default is none.
    package var ignoredFirstBytes: Set<UInt8> = []

    /// Whether EIO while reading bytes is damage of these bytes. The default is false: it is thrown, because it may
    /// pass.
    package var readErrorsAreDamage = false

    /// The most bytes of a table's block, uncompressed. A block that claims more is damage, and no memory is allocated
    /// for it. The default is 1 GiB (the longest entry that LevelDB takes) and 1 MiB.
    package var blockBytesMax = (1 << 30) + (1 << 20)

    /// The most bytes of logs to keep in memory. More throws `.tooLarge`. The default is 3 GiB.
    package var logBytesMax = 3 << 30

    /// Notes on the manifest, in case it is lost or damaged. Later writes must be known from elsewhere: the result need
    /// not have them. The default is nil.
    package var noted: NotedManifest?

    /// Whether to skip the tables if the current ones are unknown: an obsolete table that was not removed has old
    /// entries. The default is false: they are returned, and ``SalvageReport/isComplete`` is false.
    package var unknownIsLost = false

    package init() {}
}

/// Notes on a manifest's content.
package struct NotedManifest: Sendable {
    package struct Table: Sendable {
        package let level: Int
        package let byteCount: Int
        /// LevelDB's internal keys; nil if not noted.
        package let smallest: [UInt8]?
        package let largest: [UInt8]?

        package init(level: Int, byteCount: Int, smallest: [UInt8]?, largest: [UInt8]?) {
            (self.level, self.byteCount, self.smallest, self.largest) = (level, byteCount, smallest, largest)
        }
    }

    /// The manifest's number, and the length up to which it was noted.
    package let number: UInt64
    package let byteCount: Int
    /// Logs with lower numbers were in tables, except `formerLogNumber`.
    package let logNumber: UInt64
    package let formerLogNumber: UInt64
    /// Later files have this number or a higher one.
    package let nextFileNumber: UInt64
    package let tables: [UInt64: Table]

    package init(
        number: UInt64, byteCount: Int, logNumber: UInt64, formerLogNumber: UInt64, nextFileNumber: UInt64,
        tables: [UInt64: Table]
    ) {
        (self.number, self.byteCount, self.nextFileNumber, self.tables) = (number, byteCount, nextFileNumber, tables)
        (self.logNumber, self.formerLogNumber) = (logNumber, formerLogNumber)
    }
}
