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
