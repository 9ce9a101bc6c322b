import LarderCommandCatalog
import LarderEngine
import LarderRESP

/// Commands that use a value as a sequence of bits. The first bit is the highest bit of the first byte.
extension CommandTable {
    static let bitPlanners: Planners = [
        .setbit: setbit,
        .getbit: getbit,
        .bitcount: bitcount,
        .bitpos: bitpos,
        .bitop: bitop,
    ]

    static let badOffset = CommandError("ERR bit offset is not an integer or out of range")

    /// Parses the position of a bit. Throws if a value with this bit would be too long.
    /// - Parameter width: for BITFIELD, the number of bits of the field: an offset such as `#2` is multiplied by this
    ///   width. Nil for other commands.
    static func offset(_ words: CallWords, _ index: Int, width: Int? = nil) throws(CommandError) -> Int {
        var bytes = words.bytes(index)
        var factor: Int64 = 1
        if let width, bytes.first == UInt8(ascii: "#") {
            bytes = UnsafeRawBufferPointer(rebasing: bytes.dropFirst())
            factor = Int64(width)
        }
        guard let number = parseInteger(bytes) else { throw badOffset }
        let (offset, overflows) = number.multipliedReportingOverflow(by: factor)
        guard !overflows, offset >= 0, offset >> 3 < Int64(words.valueBytesMax) else { throw badOffset }
        return Int(offset)
    }

    @Sendable private static func setbit(_ words: CallWords) throws(CommandError) -> EntryPlan {
        let offset = try offset(words, 2)
        guard let bit = parseInteger(words.bytes(3)), bit == 0 || bit == 1 else {
            throw CommandError("ERR bit is not an integer or out of range")
        }
        let mask = UInt8(0x80) >> UInt8(offset & 7)
        return try .change(words, builtBytes: offset >> 3) { (update, context) throws(CommandError) in
            var previous = false
            let record = update.current(0)
            let count = max(record?.payloadCount ?? 0, offset >> 3 + 1)
            // As in Redis, nothing is stored if the bit already has this value.
            if let record, record.payloadCount == count {
                record.withPayload { previous = $0[offset >> 3] & mask != 0 }
                if previous == (bit == 1) { return .flag(previous) }
            }
            try context.admit(count, update)
            update.change(0, count: count) { payload in
                // The value is long enough: `count` includes this bit.
                previous = payload[offset >> 3] & mask != 0
                if bit == 1 { payload[offset >> 3] |= mask } else { payload[offset >> 3] &= ~mask }
            }
            return .flag(previous)
        }
    }

    @Sendable private static func getbit(_ words: CallWords) throws(CommandError) -> EntryPlan {
        let offset = try offset(words, 2)
        return .read(1) { payload, replies in
            guard let payload, offset >> 3 < payload.count else { return replies.integer(0) }
            replies.integer(Int(payload[offset >> 3] >> UInt8(7 - offset & 7) & 1))
        }
    }

    // MARK: Counting and finding

    @Sendable private static func bitcount(_ words: CallWords) throws(CommandError) -> EntryPlan {
        .read(1) { (payload, replies) throws(CommandError) in
            guard let payload else { return replies.integer(0) }
            replies.integer(try bitcount(payload, words))
        }
    }

    private static func bitcount(_ payload: UnsafeRawBufferPointer, _ words: CallWords) throws(CommandError) -> Int {
        guard words.count > 2 else { return count(payload, 0..<payload.count * 8) }
        guard words.count == 4 || words.count == 5 else { throw .syntax }
        let (start, end) = (try words.integer(2), try words.integer(3))
        // As in Redis, a call with an empty range may have an invalid unit. So check the range before the unit.
        if start < 0, end < 0, start > end { return 0 }
        let unit = words.count == 5 ? try unit(words, 4) : 8
        let range = range(from: start, through: end, of: payload.count * 8 / unit)
        return count(payload, range.lowerBound * unit..<range.upperBound * unit)
    }

    /// Returns the size of the unit in which indices count: 8 bits for `BYTE`, 1 bit for `BIT`.
    private static func unit(_ words: CallWords, _ index: Int) throws(CommandError) -> Int {
        if words.isWord(index, "BIT") { return 1 }
        guard words.isWord(index, "BYTE") else { throw .syntax }
        return 8
    }

    /// Counts the bits that are 1 in a range of bits. The range must not exceed the bytes.
    private static func count(_ bytes: UnsafeRawBufferPointer, _ range: Range<Int>) -> Int {
        var count = 0
        var place = range.lowerBound
        while place < range.upperBound {
            if place & 63 == 0, place + 64 <= range.upperBound {
                count += bytes.loadUnaligned(fromByteOffset: place >> 3, as: UInt64.self).nonzeroBitCount
                place += 64
            } else {
                count += Int(bytes[place >> 3] >> UInt8(7 - place & 7) & 1)
                place += 1
            }
        }
        return count
    }

    @Sendable private static func bitpos(_ words: CallWords) throws(CommandError) -> EntryPlan {
        let bit = try words.integer(2)
        guard bit == 0 || bit == 1 else { throw CommandError("ERR The bit argument must be 1 or 0.") }
        return .read(1) { (payload, replies) throws(CommandError) in
            guard let payload else { return replies.integer(bit == 1 ? -1 : 0) }
            replies.integer(try position(of: bit == 1, payload, words))
        }
    }

    private static func position(of bit: Bool, _ payload: UnsafeRawBufferPointer, _ words: CallWords)
        throws(CommandError) -> Int
    {
        guard words.count <= 6 else { throw .syntax }
        let start = words.count > 3 ? try words.integer(3) : 0
        let unit = words.count > 5 ? try unit(words, 5) : 8
        let length = Int64(payload.count * 8 / unit)
        let end = words.count > 4 ? try words.integer(4) : length - 1
        // The sum cannot overflow: one number is negative, and the other is not.
        let first = max(0, start < 0 ? length + start : start)
        let last = min(max(0, end < 0 ? length + end : end), length - 1)
        guard first <= last else { return -1 }
        if let place = find(bit, payload, Int(first) * unit..<(Int(last) + 1) * unit) { return place }
        // If the call has no end, zeros follow the value. The first of them is then the result.
        return !bit && words.count <= 4 ? payload.count * 8 : -1
    }

    /// Finds the first bit that is equal to `bit` in a range of bits. The range must not exceed the bytes.
    private static func find(_ bit: Bool, _ bytes: UnsafeRawBufferPointer, _ range: Range<Int>) -> Int? {
        let skipped: UInt64 = bit ? 0 : .max
        var place = range.lowerBound
        while place < range.upperBound {
            if place & 7 == 0, place + 64 <= range.upperBound,
                bytes.loadUnaligned(fromByteOffset: place >> 3, as: UInt64.self) == skipped
            {
                place += 64
            } else {
                if (bytes[place >> 3] >> UInt8(7 - place & 7) & 1 == 1) == bit { return place }
                place += 1
            }
        }
        return nil
    }

    // MARK: BITOP

    private enum BitOperation: String {
        case and = "AND"
        case or = "OR"
        case xor = "XOR"
        case not = "NOT"
    }

    @Sendable private static func bitop(_ words: CallWords) throws(CommandError) -> EntryPlan {
        guard let operation = BitOperation(rawValue: words.text(1).uppercased()) else { throw .syntax }
        if operation == .not, words.count != 4 {
            throw CommandError("ERR BITOP NOT must be called with a single source key.")
        }
        let keys = try words.keys(from: 2)
        return .change(
            ChangePlan(keys: keys, builtBytes: 0, limitsSources: true) { (update, context) throws(CommandError) in
                let sources = keys.indices.dropFirst().map { update.current($0) }
                let length = sources.reduce(0) { max($0, $1?.payloadCount ?? 0) }
                try context.admit(length, update)
                for index in keys.indices.dropFirst() { context.countRead(index, in: update) }
                guard length > 0 else {
                    update.removeStored(0)
                    return .integer(0)
                }
                update.noteBuilt(length)
                let result = combine(sources, operation, length)
                result.withUnsafeBytes { update.put(0, payload: $0) }
                return .integer(length)
            })
    }

    private static func combine(_ sources: [Record?], _ operation: BitOperation, _ length: Int) -> [UInt8] {
        var result = [UInt8](repeating: 0, count: length)
        result.withUnsafeMutableBytes { result in
            for (index, source) in sources.enumerated() {
                guard let source else {
                    if operation == .and { result.initializeMemory(as: UInt8.self, repeating: 0) }
                    continue
                }
                // The result is at least as long as each source.
                source.withPayload { bytes in
                    switch operation {
                    case _ where index == 0: bytes.copy(into: result, at: 0)
                    case .and:
                        for place in 0..<bytes.count { result[place] &= bytes[place] }
                        for place in bytes.count..<result.count { result[place] = 0 }
                    case .or: for place in 0..<bytes.count { result[place] |= bytes[place] }
                    case .xor, .not: for place in 0..<bytes.count { result[place] ^= bytes[place] }
                    }
                }
            }
            if operation == .not { for place in 0..<result.count { result[place] = ~result[place] } }
        }
        return result
    }
}
