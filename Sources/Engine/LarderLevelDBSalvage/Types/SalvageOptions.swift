/// What the caller knows about the files, and which result it wants.
package struct SalvageOptions: Sendable {
    /// The number of bytes known to be synced, for each log by number (123 for `000123.log`).
    ///
    /// Invalid bytes within the synced length are damage, and so is a log that is shorter or missing. After the synced
    /// length, a log ends at the first invalid byte. This is not damage: the machine stopped while the log was written.
    /// For a log that is not listed, an invalid end is accepted only if the file ends within its last record, or has
    /// only zeros after it. Any other invalid bytes are damage.
    package var syncedLogBytes: [UInt64: Int] = [:]

    /// Whether the keys of every batch ever written ascend strictly, not counting keys with ``ignoredFirstBytes``. The
    /// default is false.
    ///
    /// If true, only keys between the readable neighbors of an invalid piece of a large batch are lost. Otherwise the
    /// piece may have contained any key.
    package var batchesAreSorted = false

    /// Keys that begin with these bytes are neither returned nor reported. The default is none.
    package var ignoredFirstBytes: Set<UInt8> = []

    /// Whether EIO while reading bytes counts as damage of these bytes. The default is false: the error is thrown,
    /// because it may be temporary.
    package var readErrorsAreDamage = false

    /// The maximum uncompressed length of a table's block in bytes. A block with a longer stated length is damage, and
    /// no memory is allocated for it. The default is 1 GiB (the longest entry that LevelDB accepts) plus 1 MiB.
    package var blockBytesMax = (1 << 30) + (1 << 20)

    /// The maximum number of bytes of logs in memory. If the logs are longer, `.tooLarge` is thrown. The default is 3
    /// GiB.
    package var logBytesMax = 3 << 30

    /// The noted content of the manifest, used if the manifest is lost or damaged. The result may lack later writes, so
    /// the caller must know them from another source. The default is nil.
    package var noted: NotedManifest?

    /// Whether to skip the tables if it is unknown which tables are current: an obsolete table that was not removed has
    /// old entries. The default is false: the tables are read, and ``SalvageReport/isComplete`` is false.
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

    /// The manifest's number, and the length of the manifest when it was noted.
    package let number: UInt64
    package let byteCount: Int
    /// The contents of logs with lower numbers were in tables, except for the log `previousLogNumber`.
    package let logNumber: UInt64
    package let previousLogNumber: UInt64
    /// Files that are created later have this number or a higher one.
    package let nextFileNumber: UInt64
    package let tables: [UInt64: Table]

    package init(
        number: UInt64, byteCount: Int, logNumber: UInt64, previousLogNumber: UInt64, nextFileNumber: UInt64,
        tables: [UInt64: Table]
    ) {
        (self.number, self.byteCount, self.nextFileNumber, self.tables) = (number, byteCount, nextFileNumber, tables)
        (self.logNumber, self.previousLogNumber) = (logNumber, previousLogNumber)
    }
}
