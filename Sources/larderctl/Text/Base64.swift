/// Encodes and decodes base 64 with the standard alphabet and padding (RFC 4648, section 4).
enum Base64 {
    private static let letters = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

    /// The value of each letter, indexed by the letter's byte; 255 for bytes that are not letters.
    private static let values: [UInt8] = {
        var values = [UInt8](repeating: 255, count: 256)
        for (value, letter) in letters.enumerated() { values[Int(letter)] = UInt8(value) }
        return values
    }()

    /// Returns the length of the encoding of `count` bytes.
    static func encodedCount(_ count: Int) -> Int { (count + 2) / 3 * 4 }

    static func encode(_ bytes: [UInt8], into output: inout [UInt8]) {
        // Double the capacity, so that appending many short texts takes linear time.
        let needed = output.count + encodedCount(bytes.count)
        if needed > output.capacity { output.reserveCapacity(max(needed, output.capacity * 2)) }
        var index = 0
        while index < bytes.count {
            let left = min(3, bytes.count - index)
            var bits = UInt32(bytes[index]) << 16
            if left > 1 { bits |= UInt32(bytes[index + 1]) << 8 }
            if left > 2 { bits |= UInt32(bytes[index + 2]) }
            output.append(letters[Int(bits >> 18)])
            output.append(letters[Int(bits >> 12 & 63)])
            output.append(left > 1 ? letters[Int(bits >> 6 & 63)] : UInt8(ascii: "="))
            output.append(left > 2 ? letters[Int(bits & 63)] : UInt8(ascii: "="))
            index += 3
        }
    }

    /// Decodes a text. Returns nil unless ``encode(_:into:)`` would write exactly this text.
    static func decode(_ text: UnsafeRawBufferPointer) -> [UInt8]? {
        guard text.count % 4 == 0 else { return nil }
        guard text.count > 0 else { return [] }
        let padding = text[text.count - 1] != UInt8(ascii: "=") ? 0 : text[text.count - 2] != UInt8(ascii: "=") ? 1 : 2
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.count / 4 * 3)
        for start in stride(from: 0, to: text.count, by: 4) {
            let count = start + 4 < text.count ? 4 : 4 - padding
            var bits: UInt32 = 0
            for place in 0..<4 {
                let value = place < count ? values[Int(text[start + place])] : 0
                guard value < 64 else { return nil }
                bits = bits << 6 | UInt32(value)
            }
            // The unused bits of the last letter must be zero.
            guard count == 4 || bits & (count == 3 ? 0xFF : 0xFFFF) == 0 else { return nil }
            bytes.append(UInt8(truncatingIfNeeded: bits >> 16))
            if count > 2 { bytes.append(UInt8(truncatingIfNeeded: bits >> 8)) }
            if count > 3 { bytes.append(UInt8(truncatingIfNeeded: bits)) }
        }
        return bytes
    }
}
