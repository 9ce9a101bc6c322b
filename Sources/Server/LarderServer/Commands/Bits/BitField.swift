/// A part of a value that BITFIELD uses: an integer of 1 to 64 bits, signed or unsigned, at any bit offset.
struct BitField: Equatable {
    let isSigned: Bool
    /// The number of bits: 1 to 64 if signed, 1 to 63 if unsigned.
    let width: Int
    /// The position of the field's highest bit. Position 0 is the highest bit of the first byte.
    let offset: Int

    /// What to do with a number that does not fit into the field.
    enum Overflow {
        /// Drop the excess high bits.
        case wrap
        /// Use the nearest number that fits.
        case saturate
        /// Write nothing.
        case fail
    }

    /// The length in bytes that a value must have to contain the whole field.
    var bytesNeeded: Int { (offset + width - 1) >> 3 + 1 }

    /// Reads the number from a value. Bits beyond the end of the value count as zero.
    func read(_ bytes: UnsafeRawBufferPointer) -> Int64 {
        var bits: UInt64 = 0
        for place in offset..<offset + width {
            let isSet = place >> 3 < bytes.count && bytes[place >> 3] >> UInt8(7 - place & 7) & 1 == 1
            bits = bits << 1 | (isSet ? 1 : 0)
        }
        return extended(bits)
    }

    /// Writes the low bits of a number into a value, which must have at least ``bytesNeeded`` bytes.
    func write(_ number: Int64, to bytes: UnsafeMutableRawBufferPointer) {
        for index in 0..<width {
            let place = offset + index
            let mask = UInt8(0x80) >> UInt8(place & 7)
            if UInt64(bitPattern: number) >> UInt64(width - 1 - index) & 1 == 1 {
                bytes[place >> 3] |= mask
            } else {
                bytes[place >> 3] &= ~mask
            }
        }
    }

    /// Returns the low bits of a number as an integer of the field's type.
    private func extended(_ bits: UInt64) -> Int64 {
        guard width < 64 else { return Int64(bitPattern: bits) }
        let low = bits & (1 << UInt64(width) - 1)
        let isNegative = isSigned && low >> UInt64(width - 1) == 1
        return Int64(bitPattern: isNegative ? low | UInt64.max << UInt64(width) : low)
    }

    /// Adds two numbers, and applies the rule for overflow.
    /// - Returns: nil if the sum does not fit and the rule is to write nothing.
    func sum(_ value: Int64, _ amount: Int64, _ overflow: Overflow) -> Int64? {
        guard let limit = isSigned ? signedLimit(value, amount) : unsignedLimit(value, amount) else {
            return value &+ amount
        }
        switch overflow {
        case .wrap: return extended(UInt64(bitPattern: value) &+ UInt64(bitPattern: amount))
        case .saturate: return limit
        case .fail: return nil
        }
    }

    /// Returns nil if the sum fits, otherwise the largest or smallest number that fits. `room` and `fall` may overflow.
    /// This affects the result if an operand is far outside of the field's range; Redis behaves in the same way.
    private func signedLimit(_ value: Int64, _ amount: Int64) -> Int64? {
        let greatest: Int64 = width == 64 ? .max : 1 << Int64(width - 1) - 1
        let least = -greatest - 1
        let (room, fall) = (greatest &- value, least &- value)
        let isNarrow = width != 64
        if value > greatest || isNarrow && amount > room || value >= 0 && amount > 0 && amount > room {
            return greatest
        }
        if value < least || isNarrow && amount < fall || value < 0 && amount < 0 && amount < fall { return least }
        return nil
    }

    private func unsignedLimit(_ value: Int64, _ amount: Int64) -> Int64? {
        let greatest: UInt64 = 1 << UInt64(width) - 1
        let bits = UInt64(bitPattern: value)
        let (room, fall) = (Int64(bitPattern: greatest &- bits), Int64(bitPattern: 0 &- bits))
        if bits > greatest || amount > 0 && amount > room { return Int64(greatest) }
        if amount < 0, amount < fall { return 0 }
        return nil
    }
}
