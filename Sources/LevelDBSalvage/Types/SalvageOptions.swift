/// What the caller knows of the files, and what is wanted of them.
package struct SalvageOptions: Sendable {
    /// By the number of a log (123 of `000123.log`), how many of its bytes are known to have been synced.
    ///
    /// What is bad before that is damage; so is a log that is shorter, or gone. Behind that a log ends at the first
    /// bad byte, which is no damage: the machine stopped while it was written. Of a log that is not in here, a bad
    /// end counts as that only if the file itself ends within its last record, or holds nothing but zeros from there
    /// on; everything else that is bad is damage.
    package var syncedLogBytes: [UInt64: Int] = [:]

    /// Whether the keys of every batch that was ever written ascend strictly, those with ``ignoredFirstBytes`` left
    /// out of the account. The default is false.
    ///
    /// Then a bad piece of a large batch costs the keys between its readable neighbours. Otherwise it may have held
    /// any key.
    package var batchesAreSorted = false

    /// Keys that begin with these bytes are not given, and nothing is reported of them. The default is none.
    package var ignoredFirstBytes: Set<UInt8> = []

    /// Whether EIO while bytes are read is damage of these bytes. The default is false: it is thrown, because it may
    /// pass.
    package var readErrorsAreDamage = false

    /// How many bytes a table's block may have, uncompressed. What claims more is damage, and no memory is taken for
    /// it. The default is 1 GiB, the longest entry that LevelDB takes, and 1 MiB.
    package var blockBytesMax = (1 << 30) + (1 << 20)

    /// How many bytes of logs are kept in memory. More throws `.tooLarge`. The default is 3 GiB.
    package var logBytesMax = 3 << 30

    /// What was noted of the manifest, for when it is lost or damaged. Whatever was written since has to be known
    /// otherwise: it need not be in what is read. The default is nil.
    package var noted: NotedManifest?

    /// Whether nothing of the tables is given where nothing says which of them count: a table that was merged and not
    /// removed has entries of before. The default is false: they are given, and ``SalvageReport/isComplete`` is.
    package var unknownIsLost = false

    package init() {}
}

/// What a manifest said, as somebody noted it.
package struct NotedManifest: Sendable {
    package struct Table: Sendable {
        package let level: Int
        package let byteCount: Int
        /// LevelDB's internal keys; nil: not noted.
        package let smallest: [UInt8]?
        package let largest: [UInt8]?

        package init(level: Int, byteCount: Int, smallest: [UInt8]?, largest: [UInt8]?) {
            (self.level, self.byteCount, self.smallest, self.largest) = (level, byteCount, smallest, largest)
        }
    }

    /// The manifest's number, and up to which of its bytes it was noted.
    package let number: UInt64
    package let byteCount: Int
    /// Logs with lower numbers were in tables, but for `formerLogNumber`.
    package let logNumber: UInt64
    package let formerLogNumber: UInt64
    /// Files with this number or a higher one were made later.
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
