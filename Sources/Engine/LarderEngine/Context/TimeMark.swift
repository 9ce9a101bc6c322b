/// A mark in the file `TIME`: the engine's time together with the wall clock's.
///
/// ```
/// offset  bytes  field (integers big-endian)
///      0      8  "LARDERTM"
///      8      4  version of the layout: 1
///     12      4  CRC-32C of the bytes 0 to 11; every version begins with these 16 bytes
///     16      8  number of the mark; the higher one of two is valid
///     24      8  the engine's time, milliseconds since 1970
///     32      8  the wall clock then, milliseconds since 1970
///     40      4  CRC-32C of the bytes 0 to 39
/// ```
package struct TimeMark: AlternatingMark, Hashable, Sendable {
    package static let version: UInt32 = 1
    package static let byteCount = 44
    static let magic: UInt64 = 0x4C41_5244_4552_544D

    package var number: UInt64
    package var time: Int64
    package var wall: Int64

    package init(number: UInt64, time: Int64, wall: Int64) {
        self.number = number
        self.time = time
        self.wall = wall
    }

    package var bytes: [UInt8] {
        SealedBlock.bytes(
            Self.magic, version: Self.version, [number, UInt64(bitPattern: time), UInt64(bitPattern: wall)])
    }

    init(parsing bytes: UnsafeRawBufferPointer) throws(SealedBlock.Defect) {
        let numbers = try SealedBlock.numbers(3, in: bytes, Self.magic, version: Self.version)
        guard let time = Int64(exactly: numbers[1]), let wall = Int64(exactly: numbers[2]) else { throw .malformed }
        self.init(number: numbers[0], time: time, wall: wall)
    }
}
