/// A mark in the file `SYNCED` of a larder. It records which part of the journal must be on the disk.
///
/// ```
/// offset  bytes  field (integers big-endian)
///      0      8  "LARDERSY"
///      8      4  version of the layout: 1
///     12      4  CRC-32C of the bytes 0 to 11; every version begins with these 16 bytes
///     16      8  number of the mark; the higher one of two is valid
///     24      8  `commit-units` in `SEQUENCES` when the mark was written; ignore the mark if that has changed
///     32      8  commit units up to this one were removed from the journal, because LevelDB has them
///     40      8  commit units up to this one were synced
///     48      4  CRC-32C of the bytes 0 to 47
/// ```
package struct JournalMark: AlternatingMark, Hashable, Sendable {
    package static let version: UInt32 = 1
    package static let byteCount = 52
    static let magic: UInt64 = 0x4C41_5244_4552_5359

    package var number: UInt64
    package var reserved: UInt64
    package var removed: UInt64
    package var synced: UInt64

    package init(number: UInt64 = 0, reserved: UInt64 = 0, removed: UInt64 = 0, synced: UInt64 = 0) {
        self.number = number
        self.reserved = reserved
        self.removed = removed
        self.synced = synced
    }

    package var bytes: [UInt8] {
        SealedBlock.bytes(Self.magic, version: Self.version, [number, reserved, removed, synced])
    }

    init(parsing bytes: UnsafeRawBufferPointer) throws(SealedBlock.Defect) {
        let numbers = try SealedBlock.numbers(4, in: bytes, Self.magic, version: Self.version)
        self.init(number: numbers[0], reserved: numbers[1], removed: numbers[2], synced: numbers[3])
    }
}
