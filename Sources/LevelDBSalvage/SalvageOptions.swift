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

    package init() {}
}
