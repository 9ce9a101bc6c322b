/// A mark in the file `TIME`: the engine's time together with the wall clock's.
///
/// ```
/// offset  bytes  field (integers big-endian)
///      0      8  "LARDERTM"
///      8      4  version of the layout: 1
///     12      4  CRC-32C of the bytes 0 to 11; so far the beginning is the same in every version
///     16      8  number of the mark; the higher one of two counts
///     24      8  the engine's time, milliseconds since 1970
///     32      8  the wall clock then, milliseconds since 1970
///     40      4  CRC-32C of the bytes 0 to 39
/// ```
package struct TimeMark: Hashable, Sendable {
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
        for value in [number, UInt64(bitPattern: time), UInt64(bitPattern: wall)] {
            BigEndian.append(value, to: &bytes)
        }
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
        guard version >= 1, let number = BigEndian.read(bytes, at: 16), let time = BigEndian.read(bytes, at: 24),
            let wall = BigEndian.read(bytes, at: 32), let sum = BigEndian.read(bytes, at: 40, count: 4),
            sum == UInt64(CRC32C.checksum(UnsafeRawBufferPointer(rebasing: bytes[0..<40]))),
            let time = Int64(exactly: time), let wall = Int64(exactly: wall)
        else { throw .malformed }
        self.init(number: number, time: time, wall: wall)
    }
}
