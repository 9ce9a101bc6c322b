/// Computes the hash slot of a key in a Redis cluster: CRC-16 (XMODEM) of the key or its hash tag `{…}`.
package enum HashSlot {
    package static let count = 16_384

    package static func of(_ key: [UInt8]) -> Int {
        if let open = key.firstIndex(of: UInt8(ascii: "{")),
            let close = key[(open + 1)...].firstIndex(of: UInt8(ascii: "}")), close > open + 1
        {
            return Int(crc16(key[(open + 1)..<close])) % count
        }
        return Int(crc16(key[...])) % count
    }

    private static let table: [UInt16] = (0..<256).map { index in
        var value = UInt16(index) << 8
        for _ in 0..<8 { value = value & 0x8000 != 0 ? (value << 1) ^ 0x1021 : value << 1 }
        return value
    }

    static func crc16(_ bytes: ArraySlice<UInt8>) -> UInt16 {
        var crc: UInt16 = 0
        for byte in bytes { crc = (crc << 8) ^ table[Int(UInt8(truncatingIfNeeded: crc >> 8) ^ byte)] }
        return crc
    }
}
