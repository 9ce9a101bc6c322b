import LarderCommandCatalog
import LarderEngine
import LarderRESP

extension CommandTable {
    static let bitFieldPlanners: Planners = [
        .bitfield: { words throws(CommandError) in try bitfield(words, mayWrite: true) },
        .bitfieldReadonly: { words throws(CommandError) in try bitfield(words, mayWrite: false) },
    ]

    private struct FieldOperation {
        enum Kind {
            case get
            case set(Int64)
            case add(Int64)
        }

        let kind: Kind
        let field: BitField
        let overflow: BitField.Overflow

        var writes: Bool { if case .get = kind { false } else { true } }

        /// Computes the operation without changing the value.
        /// - Returns: the number for the reply (nil for a null), and the number to write into the field (nil for none).
        func run(on bytes: UnsafeRawBufferPointer) -> (reply: Int64?, written: Int64?) {
            let previous = field.read(bytes)
            switch kind {
            case .get: return (previous, nil)
            case .set(let number):
                guard let fitting = field.sum(number, 0, overflow) else { return (nil, nil) }
                return (previous, fitting)
            case .add(let amount):
                let sum = field.sum(previous, amount, overflow)
                return (sum, sum)
            }
        }
    }

    private static func bitfield(_ words: CallWords, mayWrite: Bool) throws(CommandError) -> EntryPlan {
        let operations = try operations(words)
        guard let bytesNeeded = operations.filter(\.writes).map(\.field.bytesNeeded).max() else {
            return .read(1) { payload, replies in
                let numbers = payload.map { payload in operations.map { $0.run(on: payload).reply } }
                replies.integers(numbers ?? operations.map { _ in 0 })
            }
        }
        guard mayWrite else { throw CommandError("ERR BITFIELD_RO only supports the GET subcommand") }
        // As in Redis, a value that is too short for a field is extended, even if no operation writes.
        return try .change(words, builtBytes: bytesNeeded) { (update, context) throws(CommandError) in
            let record = update.current(0)
            let count = max(record?.payloadCount ?? 0, bytesNeeded)
            if let record, record.payloadCount == count {
                var unchanged: [Int64?]?
                record.withPayload { unchanged = runUnchanging(operations, on: $0) }
                if let unchanged { return .written { $0.integers(unchanged) } }
            }
            try context.admit(count, update)
            var numbers: [Int64?] = []
            update.change(0, count: count) { payload in
                numbers = operations.map { operation in
                    let (reply, written) = operation.run(on: UnsafeRawBufferPointer(payload))
                    if let written { operation.field.write(written, to: payload) }
                    return reply
                }
            }
            return .written { [numbers] in $0.integers(numbers) }
        }
    }

    /// Runs the operations if none of them changes a bit. As in Redis, nothing is stored then.
    /// - Returns: the numbers for the reply; nil if an operation would change a bit.
    private static func runUnchanging(_ operations: [FieldOperation], on bytes: UnsafeRawBufferPointer) -> [Int64?]? {
        var numbers: [Int64?] = []
        for operation in operations {
            let (reply, written) = operation.run(on: bytes)
            if let written, written != operation.field.read(bytes) { return nil }
            numbers.append(reply)
        }
        return numbers
    }

    // MARK: Words

    private static func operations(_ words: CallWords) throws(CommandError) -> [FieldOperation] {
        var operations: [FieldOperation] = []
        var overflow = BitField.Overflow.wrap
        var index = 2
        while index < words.count {
            let behind = words.count - index - 1
            if words.isWord(index, "OVERFLOW"), behind >= 1 {
                overflow = try Self.overflow(words, index + 1)
                index += 2
                continue
            }
            let isGet = words.isWord(index, "GET") && behind >= 2
            let isSet = words.isWord(index, "SET") && behind >= 3
            guard isGet || isSet || words.isWord(index, "INCRBY") && behind >= 3 else { throw .syntax }
            let field = try field(words, index + 1)
            if isGet {
                operations.append(FieldOperation(kind: .get, field: field, overflow: overflow))
                index += 3
            } else {
                let number = try words.integer(index + 3)
                // Apply Larder's limit for the length of values. Redis accepts fields that end a few bytes later.
                guard field.bytesNeeded <= words.valueBytesMax else { throw badOffset }
                operations.append(
                    FieldOperation(kind: isSet ? .set(number) : .add(number), field: field, overflow: overflow))
                index += 4
            }
        }
        return operations
    }

    private static func overflow(_ words: CallWords, _ index: Int) throws(CommandError) -> BitField.Overflow {
        if words.isWord(index, "WRAP") { return .wrap }
        if words.isWord(index, "SAT") { return .saturate }
        if words.isWord(index, "FAIL") { return .fail }
        throw CommandError("ERR Invalid OVERFLOW type specified")
    }

    /// Parses the type of a field, such as `i8` or `u63`, and the offset that follows.
    private static func field(_ words: CallWords, _ index: Int) throws(CommandError) -> BitField {
        let type = words.bytes(index)
        let isSigned = type.first == UInt8(ascii: "i")
        guard isSigned || type.first == UInt8(ascii: "u"),
            let width = parseInteger(UnsafeRawBufferPointer(rebasing: type.dropFirst())),
            (1...(isSigned ? 64 : 63)).contains(width)
        else {
            throw CommandError(
                "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.")
        }
        let offset = try offset(words, index + 1, width: Int(width))
        return BitField(isSigned: isSigned, width: Int(width), offset: offset)
    }
}

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
