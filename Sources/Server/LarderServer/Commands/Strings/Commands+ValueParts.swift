import LarderCommandCatalog
import LarderEngine
import LarderRESP

/// Commands that read or change a part of a value.
extension CommandTable {
    static let valuePartPlanners: Planners = [
        .append: append,
        .getrange: getrange,
        .substr: getrange,
        .setrange: setrange,
    ]

    private static let tooLong = CommandError("ERR string exceeds maximum allowed size (proto-max-bulk-len)")

    @Sendable private static func append(_ words: CallWords) throws(CommandError) -> EntryPlan {
        let value = words.bytes(2)
        let most = words.valueBytesMax
        return try .change(words, builtBytes: 0) { (update, context) throws(CommandError) in
            let start = update.payload(0)?.count ?? 0
            // The sum cannot overflow, because both values are in memory.
            guard start + value.count <= most else { throw tooLong }
            try context.admit(start + value.count, update)
            update.change(0, count: start + value.count) { value.copy(into: $0, at: start) }
            return .integer(start + value.count)
        }
    }

    @Sendable private static func setrange(_ words: CallWords) throws(CommandError) -> EntryPlan {
        let value = words.bytes(3)
        let offset = try words.integer(2)
        guard offset >= 0 else { throw CommandError("ERR offset is out of range") }
        let most = words.valueBytesMax
        let fits = offset <= Int64(most) && Int(offset) + value.count <= most
        let bytes = fits && !value.isEmpty ? Int(offset) + value.count : 0
        return try .change(words, builtBytes: bytes) { (update, context) throws(CommandError) in
            let previous = update.payload(0)?.count ?? 0
            guard !value.isEmpty else { return .integer(previous) }
            guard fits else { throw tooLong }
            let count = max(previous, bytes)
            try context.admit(count, update)
            update.change(0, count: count) { value.copy(into: $0, at: Int(offset)) }
            return .integer(count)
        }
    }

    @Sendable private static func getrange(_ words: CallWords) throws(CommandError) -> EntryPlan {
        let start = try words.integer(2)
        let end = try words.integer(3)
        return .read(1) { payload, replies in
            guard let payload else { return replies.bulk("") }
            let range = range(from: start, through: end, of: payload.count)
            replies.bulk(UnsafeRawBufferPointer(rebasing: payload[range]))
        }
    }

    /// Converts the indices of the first and last element to a range within `count` elements. A negative index counts
    /// from the end: -1 is the last element.
    static func range(from start: Int64, through end: Int64, of count: Int) -> Range<Int> {
        // The sum below cannot overflow: one number is negative, and the other is not.
        let length = Int64(count)
        let first = max(0, start < 0 ? length + start : start)
        let last = min(max(0, end < 0 ? length + end : end), length - 1)
        guard first <= last, !(start < 0 && end < 0 && start > end) else { return 0..<0 }
        return Int(first)..<Int(last) + 1
    }
}

extension UnsafeRawBufferPointer {
    /// Copies all bytes to `target`, beginning at an offset. `target` must be large enough.
    func copy(into target: UnsafeMutableRawBufferPointer, at offset: Int) {
        UnsafeMutableRawBufferPointer(rebasing: target[offset..<offset + count]).copyMemory(from: self)
    }
}
