import LarderCommandCatalog
import LarderEngine
import LarderRESP

/// Commands that read or change a part of a value.
extension CommandTable {
    static let valuePartCommands: Handlers = [
        .append: ValuePartCommands.append,
        .getrange: ValuePartCommands.getrange,
        .substr: ValuePartCommands.getrange,
        .setrange: ValuePartCommands.setrange,
    ]
}

enum ValuePartCommands {
    static let tooLong = CommandError("ERR string exceeds maximum allowed size (proto-max-bulk-len)")

    @Sendable static func append(_ call: inout Call) throws(CommandError) -> Outcome {
        let value = call.bytes(2)
        let most = call.server.limits.valueBytesMax
        let length = try call.build([try call.key(1)]) { (update, call) -> Call.Built<Int> in
            let start = update.payload(0)?.count ?? 0
            // The sum cannot overflow, because both values are in memory.
            guard start + value.count <= most else { return .failure(tooLong) }
            let admission = call.admits(start + value.count, update)
            guard admission == .granted else { return .refused(admission) }
            update.change(0, count: start + value.count) { value.copy(into: $0, at: start) }
            return .value(start + value.count)
        }
        return call.reply(length)
    }

    @Sendable static func setrange(_ call: inout Call) throws(CommandError) -> Outcome {
        let value = call.bytes(3)
        let offset = try call.integer(2)
        guard offset >= 0 else { throw CommandError("ERR offset is out of range") }
        let most = call.server.limits.valueBytesMax
        let fits = offset <= Int64(most) && Int(offset) + value.count <= most
        if fits, !value.isEmpty { try call.mayBuild(bytes: Int(offset) + value.count) }
        let length = try call.build([try call.key(1)]) { (update, call) -> Call.Built<Int> in
            let previous = update.payload(0)?.count ?? 0
            guard !value.isEmpty else { return .value(previous) }
            guard fits else { return .failure(tooLong) }
            let count = max(previous, Int(offset) + value.count)
            let admission = call.admits(count, update)
            guard admission == .granted else { return .refused(admission) }
            update.change(0, count: count) { value.copy(into: $0, at: Int(offset)) }
            return .value(count)
        }
        return call.reply(length)
    }

    @Sendable static func getrange(_ call: inout Call) throws(CommandError) -> Outcome {
        let start = try call.integer(2)
        let end = try call.integer(3)
        let replies = call.session.replyMemory
        let isFound = try call.read(1) { _, payload in
            let range = range(from: start, through: end, of: payload.count)
            replies.pointee.bulk(UnsafeRawBufferPointer(rebasing: payload[range]))
        }
        if !isFound { call.session.replies.bulk("") }
        return .done
    }

    /// Converts the indices of the first and the last of `count` elements to a range. Negative indices count from the
    /// end.
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
