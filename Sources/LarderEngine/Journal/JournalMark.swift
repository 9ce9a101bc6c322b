/// A mark in the file `SYNCED` of a larder: which part of the journal must be on the disk.
///
/// ```
/// offset  bytes  field (integers big-endian)
///      0      8  "LARDERSY"
///      8      4  version of the layout: 1
///     12      4  CRC-32C of the bytes 0 to 11; every version begins with these 16 bytes
///     16      8  number of the mark; the higher one of two counts
///     24      8  `commit-units` in `SEQUENCES` when it was written; with another one there the mark says nothing
///     32      8  commit units up to this one were removed from the journal, because LevelDB has them
///     40      8  commit units up to this one were synced
///     48      4  CRC-32C of the bytes 0 to 47
/// ```
package struct JournalMark: Hashable, Sendable {
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

    package enum Defect: Error, Equatable {
        case newerVersion(UInt32)
        case malformed
    }

    package var bytes: [UInt8] {
        var bytes: [UInt8] = []
        func append(_ value: UInt32) { withUnsafeBytes(of: value.bigEndian) { bytes.append(contentsOf: $0) } }
        BigEndian.append(Self.magic, to: &bytes)
        append(Self.version)
        append(CRC32C.checksum(bytes))
        for value in [number, reserved, removed, synced] { BigEndian.append(value, to: &bytes) }
        append(CRC32C.checksum(bytes))
        return bytes
    }

    package init(parsing bytes: UnsafeRawBufferPointer) throws(Defect) {
        guard let magic = BigEndian.read(bytes, at: 0), magic == Self.magic,
            let version = BigEndian.read(bytes, at: 8, count: 4),
            let beginning = BigEndian.read(bytes, at: 12, count: 4),
            beginning == UInt64(CRC32C.checksum(UnsafeRawBufferPointer(rebasing: bytes[0..<12])))
        else { throw .malformed }
        // A newer layout may continue differently: nothing else is read from it.
        guard version <= UInt64(Self.version) else { throw .newerVersion(UInt32(version)) }
        guard version >= 1, let number = BigEndian.read(bytes, at: 16), let reserved = BigEndian.read(bytes, at: 24),
            let removed = BigEndian.read(bytes, at: 32), let synced = BigEndian.read(bytes, at: 40),
            let sum = BigEndian.read(bytes, at: 48, count: 4),
            sum == UInt64(CRC32C.checksum(UnsafeRawBufferPointer(rebasing: bytes[0..<48])))
        else { throw .malformed }
        self.init(number: number, reserved: reserved, removed: removed, synced: synced)
    }
}
