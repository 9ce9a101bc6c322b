/// The payloads of DUMP, RESTORE and FUNCTION DUMP, in the format of Redis. A payload consists of a byte for the type,
/// a string, two bytes for the version of the format, and eight bytes for the CRC-64 of all preceding bytes. The
/// version and the CRC-64 are little-endian.
///
/// A string is stored as its length, followed by its bytes. The first two bits of the length tell its size: 00 for 6
/// bits, 01 for 14, and 10 for 32 or 64, depending on the other six bits. 11 means another form, which depends on the
/// other six bits: an integer of one, two or four bytes, or a text compressed with LZF.
package enum DumpPayload {
    /// The version of the format that Redis 7.0 uses.
    private static let version: UInt16 = 10
    private static let stringType: UInt8 = 0
    /// The type of a function library, whose string is the library's source.
    private static let functionType: UInt8 = 0xF5
    private static let footerBytes = 10

    private enum Encoding {
        static let int8: UInt8 = 0xC0
        static let int16: UInt8 = 0xC1
        static let int32: UInt8 = 0xC2
        static let lzf: UInt8 = 0xC3
    }

    // MARK: Writing

    /// Encodes a value, with the same bytes as Redis 7.0.
    static func encode(_ value: UnsafeRawBufferPointer) -> [UInt8] {
        var bytes = [stringType]
        bytes.reserveCapacity(value.count + 32)
        append(string: value, to: &bytes)
        return sealed(bytes)
    }

    /// Encodes the sources of function libraries.
    static func encode(libraries texts: [[UInt8]]) -> [UInt8] {
        var bytes: [UInt8] = []
        for text in texts {
            bytes.append(functionType)
            text.withUnsafeBytes { append(string: $0, to: &bytes) }
        }
        return sealed(bytes)
    }

    private static func append(string value: UnsafeRawBufferPointer, to bytes: inout [UInt8]) {
        if let integer = integer(value) {
            bytes += integer
        } else if let compressed = compressed(value) {
            bytes.append(Encoding.lzf)
            append(length: compressed.count, to: &bytes)
            append(length: value.count, to: &bytes)
            bytes += compressed
        } else {
            append(length: value.count, to: &bytes)
            bytes.append(contentsOf: value)
        }
    }

    /// Returns the content, followed by the version and the checksum.
    private static func sealed(_ content: [UInt8]) -> [UInt8] {
        var bytes = content
        append(version, to: &bytes)
        append(bytes.withUnsafeBytes { CRC64.checksum($0) }, to: &bytes)
        return bytes
    }

    /// Encodes a value that is the decimal text of an integer with at most 32 bits; returns nil for other values.
    private static func integer(_ value: UnsafeRawBufferPointer) -> [UInt8]? {
        guard value.count <= 11, let number = parseInteger(value) else { return nil }
        var bytes: [UInt8] = []
        if let small = Int8(exactly: number) {
            bytes = [Encoding.int8, UInt8(bitPattern: small)]
        } else if let medium = Int16(exactly: number) {
            bytes = [Encoding.int16]
            append(UInt16(bitPattern: medium), to: &bytes)
        } else if let large = Int32(exactly: number) {
            bytes = [Encoding.int32]
            append(UInt32(bitPattern: large), to: &bytes)
        } else {
            return nil
        }
        return bytes
    }

    /// Compresses a value; returns nil if the value is short, or if compression would save fewer than four bytes.
    private static func compressed(_ value: UnsafeRawBufferPointer) -> [UInt8]? {
        value.count > 20 ? LZF.compress(value, bytesMax: value.count - 4) : nil
    }

    private static func append(length: Int, to bytes: inout [UInt8]) {
        switch length {
        case ..<(1 << 6): bytes.append(UInt8(length))
        case ..<(1 << 14): bytes += [0x40 | UInt8(length >> 8), UInt8(truncatingIfNeeded: length)]
        case ...Int(UInt32.max):
            bytes.append(0x80)
            withUnsafeBytes(of: UInt32(length).bigEndian) { bytes.append(contentsOf: $0) }
        default:
            bytes.append(0x81)
            withUnsafeBytes(of: UInt64(length).bigEndian) { bytes.append(contentsOf: $0) }
        }
    }

    private static func append(_ number: some FixedWidthInteger, to bytes: inout [UInt8]) {
        withUnsafeBytes(of: number.littleEndian) { bytes.append(contentsOf: $0) }
    }

    // MARK: Reading

    package enum Defect: Error, Equatable {
        /// The payload is too short, has a newer version, or has a wrong checksum.
        case footer
        /// The content is not of the expected type, or is malformed.
        case format
    }

    /// Decodes a payload that contains a value. Never traps, whatever the bytes are.
    /// - Parameter bytesMax: the maximum length of the value, in bytes. No memory is allocated for a longer value.
    static func decode(_ payload: UnsafeRawBufferPointer, bytesMax: Int) throws(Defect) -> [UInt8] {
        _ = try content(of: payload)
        // As in Redis, bytes between the value and the footer are ignored, and a value may extend into the footer.
        var reader = Reader(bytes: payload)
        guard reader.byte() == stringType, let value = reader.string(bytesMax) else { throw .format }
        return value
    }

    /// Decodes a payload that contains the sources of function libraries. Never traps, whatever the bytes are.
    /// - Parameter bytesMax: the maximum length of all sources together, in bytes.
    static func decodeLibraries(_ payload: UnsafeRawBufferPointer, bytesMax: Int) throws(Defect) -> [[UInt8]] {
        var reader = Reader(bytes: try content(of: payload))
        var texts: [[UInt8]] = []
        var room = bytesMax
        while let type = reader.byte() {
            guard type == functionType, let text = reader.string(room) else { throw .format }
            room -= text.count
            texts.append(text)
        }
        return texts
    }

    /// Checks the version and the checksum at the end of a payload, and returns the payload without them.
    private static func content(of payload: UnsafeRawBufferPointer) throws(Defect) -> UnsafeRawBufferPointer {
        guard payload.count >= footerBytes else { throw .footer }
        let end = payload.count - footerBytes
        let foot = UnsafeRawBufferPointer(rebasing: payload[end...])
        let checked = UnsafeRawBufferPointer(rebasing: payload[..<(end + 2)])
        guard foot.loadUnaligned(as: UInt16.self).littleEndian <= version,
            foot.loadUnaligned(fromByteOffset: 2, as: UInt64.self).littleEndian == CRC64.checksum(checked)
        else { throw .footer }
        return UnsafeRawBufferPointer(rebasing: payload[..<end])
    }

    /// Returns an approximate upper limit for the length of the value in a payload, without decoding it.
    static func decodedBytesMax(_ payload: UnsafeRawBufferPointer) -> Int {
        let isCompressed = payload.count > 1 && payload[1] == Encoding.lzf
        return isCompressed ? payload.count * LZF.growthMax : payload.count
    }

    private struct Reader {
        let bytes: UnsafeRawBufferPointer
        var index = 0

        mutating func byte() -> UInt8? { take(1)?.first }

        mutating func take(_ count: Int) -> UnsafeRawBufferPointer? {
            guard count >= 0, count <= bytes.count - index else { return nil }
            defer { index += count }
            return UnsafeRawBufferPointer(rebasing: bytes[index..<index + count])
        }

        private mutating func integer<Number: FixedWidthInteger & BitwiseCopyable>(_ type: Number.Type) -> Number? {
            take(MemoryLayout<Number>.size)?.loadUnaligned(as: type)
        }

        mutating func string(_ bytesMax: Int) -> [UInt8]? {
            guard index < bytes.count else { return nil }
            switch bytes[index] {
            case Encoding.int8:
                index += 1
                return integer(Int8.self).map { Array(String($0).utf8) }
            case Encoding.int16:
                index += 1
                return integer(Int16.self).map { Array(String($0.littleEndian).utf8) }
            case Encoding.int32:
                index += 1
                return integer(Int32.self).map { Array(String($0.littleEndian).utf8) }
            case Encoding.lzf:
                index += 1
                guard let packed = length(), let count = length(), count <= bytesMax, let input = take(packed) else {
                    return nil
                }
                return LZF.decompress(input, count: count)
            default:
                guard let count = length(), count <= bytesMax, let value = take(count) else { return nil }
                return Array(value)
            }
        }

        /// Reads a length. Returns nil if the string is stored in another form, or if the length is impossible.
        private mutating func length() -> Int? {
            guard let first = byte() else { return nil }
            switch (first >> 6, first) {
            case (0, _): return Int(first)
            case (1, _): return byte().map { Int(first & 0x3F) << 8 | Int($0) }
            case (2, 0x80): return integer(UInt32.self).map { Int($0.bigEndian) }
            case (2, 0x81): return integer(UInt64.self).flatMap { Int(exactly: $0.bigEndian) }
            default: return nil
            }
        }
    }
}

/// The checksum at the end of a DUMP payload: CRC-64 with the Jones polynomial, bit-reflected, with the initial value
/// 0.
enum CRC64 {
    private static let table: [UInt64] = (0..<256).map { index in
        (0..<8).reduce(UInt64(index)) { rest, _ in rest & 1 == 0 ? rest >> 1 : rest >> 1 ^ 0x95AC_9329_AC4B_C9B5 }
    }

    static func checksum(_ bytes: UnsafeRawBufferPointer) -> UInt64 {
        table.withUnsafeBufferPointer { table in
            // The table has 256 elements, so a byte is always a valid index.
            bytes.reduce(0) { sum, byte in table[Int(UInt8(truncatingIfNeeded: sum) ^ byte)] ^ sum >> 8 }
        }
    }
}
