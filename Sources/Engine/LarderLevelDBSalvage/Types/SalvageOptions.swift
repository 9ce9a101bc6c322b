/// Options of a salvage: what the caller knows about the files, and how to treat uncertain data.
package struct SalvageOptions: Sendable {
    /// The number of bytes known to be synced, for each log by number (123 for `000123.log`).
    ///
    /// Invalid bytes within the synced length are damage, and so is a log that is shorter or missing. After the synced
    /// length, a log ends at the first invalid byte. This is not damage: the machine failed while the log was being
    /// written. In a log that is not listed, invalid bytes are damage, unless the file ends within its last record, or
    /// only zeros follow.
    package var syncedLogBytes: [UInt64: Int] = [:]

    /// Whether the keys of every batch ever written ascend strictly, not counting keys with ``ignoredFirstBytes``. The
    /// default is false.
    ///
    /// If true, an invalid part of a batch can only have contained keys between its readable neighbors, and only these
    /// keys are lost. Otherwise the part may have contained any key.
    package var batchesAreSorted = false

    /// The first bytes of keys to ignore: such keys are neither returned nor reported as lost. The default is none.
    package var ignoredFirstBytes: Set<UInt8> = []

    /// Whether bytes that cannot be read because of EIO (an error of the device) count as damaged. The default is
    /// false: the error is thrown, because it may be temporary.
    package var readErrorsAreDamage = false

    /// The maximum uncompressed length of a table's block in bytes. A block with a longer stated length is damage, and
    /// no memory is allocated for it. The default is 1 GiB (the longest entry that LevelDB accepts) plus 1 MiB.
    package var blockBytesMax = (1 << 30) + (1 << 20)

    /// The maximum number of bytes of logs in memory. If the logs are longer, `.tooLarge` is thrown. The default is 3
    /// GiB.
    package var logBytesMax = 3 << 30

    /// The content of the manifest as the caller has recorded it earlier, used if the manifest is lost or damaged. The
    /// result may lack later writes, so the caller must have them from another source. The default is nil.
    package var noted: RecordedManifest?

    /// Whether to return no entries of tables if it is unknown which tables are current: obsolete tables have outdated
    /// entries. The default is false: all tables are used, and ``SalvageReport/isComplete`` is false.
    package var unknownIsLost = false

    package init() {}
}

/// The content of a manifest, as the caller has recorded it before the damage.
package struct RecordedManifest: Sendable {
    package struct Table: Sendable {
        package let level: Int
        package let byteCount: Int
        /// The smallest and largest key, in LevelDB's internal form; nil if not recorded.
        package let smallest: [UInt8]?
        package let largest: [UInt8]?

        package init(level: Int, byteCount: Int, smallest: [UInt8]?, largest: [UInt8]?) {
            (self.level, self.byteCount, self.smallest, self.largest) = (level, byteCount, smallest, largest)
        }
    }

    /// The number in the manifest's file name.
    package let number: UInt64
    /// The manifest's length in bytes when it was recorded.
    package let byteCount: Int
    /// The lowest number of a log that LevelDB still needed. In addition, LevelDB needed the log `previousLogNumber`.
    package let logNumber: UInt64
    package let previousLogNumber: UInt64
    /// The next file number: files that were created later have this number or a higher one.
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
