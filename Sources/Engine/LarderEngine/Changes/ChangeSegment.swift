/// The bytes of one file of a ``ChangeLog``. **On disk: do not change.**
///
/// ```
/// offset  bytes  field (integers big-endian)
///      0      8  "LARDERCH"
///      8      4  version of the layout: 1
///     12      4  CRC-32C of the bytes 0 to 11
///     16      8  number of this segment
///     24      8  valid bytes of the previous segment; 0 if there was none
///     32      4  CRC-32C of the bytes 0 to 31
///     36         frames: length of the records (4), CRC-32C (4), records (``ChangeRecord``)
/// ```
/// The checksum of a frame covers the segment's number and the frame's offset, 8 bytes each, and the records.
enum ChangeSegment {
    static let directoryName = "CHANGES"
    static let magic: UInt64 = 0x4C41_5244_4552_4348
    static let version: UInt32 = 1
    static let headerBytes = 36
    static let frameHeaderBytes = 8
    /// The length of the longest valid frame, in bytes.
    static let frameBytesMax = 1 << 28

    static func header(number: UInt64, previousBytes: Int) -> [UInt8] {
        SealedBlock.bytes(magic, version: version, [number, UInt64(previousBytes)])
    }

    static func frame(_ records: [UInt8], number: UInt64, offset: Int) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(frameHeaderBytes + records.count)
        for value in [UInt32(records.count), checksum(records[...], number, offset)] {
            withUnsafeBytes(of: value.bigEndian) { bytes.append(contentsOf: $0) }
        }
        bytes.append(contentsOf: records)
        return bytes
    }

    private static func checksum(_ records: ArraySlice<UInt8>, _ number: UInt64, _ offset: Int) -> UInt32 {
        let place = withUnsafeBytes(of: (number.bigEndian, UInt64(offset).bigEndian)) { CRC32C.checksum($0) }
        return records.withUnsafeBytes { CRC32C.extend(place, $0) }
    }

    /// Returns the number of valid bytes in the previous segment, read from this segment's header.
    /// - Returns: nil if this is not a segment with that number.
    static func previousBytes(_ bytes: [UInt8], number: UInt64) -> Int? {
        let numbers = bytes.withUnsafeBytes { try? SealedBlock.numbers(2, in: $0, magic, version: version) }
        guard let numbers, numbers[0] == number else { return nil }
        return Int(clamping: numbers[1])
    }

    /// Returns the range of the records in the frame at `offset`; nil if no complete, undamaged frame begins there and
    /// ends at or before `limit`.
    static func records(_ bytes: [UInt8], at offset: Int, limit: Int, number: UInt64) -> Range<Int>? {
        guard limit <= bytes.count, limit - offset >= frameHeaderBytes else { return nil }
        let header = bytes.withUnsafeBytes {
            (BigEndian.read($0, at: offset, count: 4), BigEndian.read($0, at: offset + 4, count: 4))
        }
        guard let count = header.0, let sum = header.1, count > 0, count <= UInt64(frameBytesMax),
            Int(count) <= limit - offset - frameHeaderBytes
        else { return nil }
        let start = offset + frameHeaderBytes
        let range = start..<(start + Int(count))
        return UInt64(checksum(bytes[range], number, offset)) == sum ? range : nil
    }

    /// Returns a file's name, such as `0000000000000001.log`.
    static func fileName(_ number: UInt64) -> String { JournalFormat.fileName(number) }

    static func number(ofFile name: String) -> UInt64? { JournalFormat.number(ofFile: name) }
}
