import LarderEngine
import LarderRESP

/// The operations of commands on a single entry that reply with a number, such as INCR, EXPIRE and DEL.
enum EntryOperation {
    case exists
    case remove
    case remaining(inSeconds: Bool)
    case add(Int64)
    case expire(at: Int64, if: Condition)

    /// Parses the arguments of EXPIRE and similar commands.
    static func expire(_ words: some CommandWords, _ form: ExpiryForm) throws(CommandError) -> EntryOperation {
        let condition = words.count == 3 ? [] : try Condition(words)
        return .expire(at: try form.deadline(try words.integer(2), words, positive: false), if: condition)
    }

    /// The parts of the entry that the operation needs.
    var loading: Loading { if case .remove = self { .headers } else { .records } }

    /// Applies the operation to the entry of the key at `index` in an update.
    /// - Returns: the number for the reply.
    @inline(__always)
    func apply(_ update: Update, _ index: Int) throws(CommandError) -> Int64 {
        switch self {
        case .exists: return update.has(index) ? 1 : 0
        case .remove: return Self.remove(update, index) ? 1 : 0
        case .remaining(let inSeconds):
            guard update.has(index) else { return Self.noEntry }
            return Self.remaining(update.deadline(index), now: update.now, inSeconds: inSeconds)
        case .add(let amount): return try Self.add(amount, update, index)
        case .expire(let deadline, let condition):
            return Self.expire(update, index, at: deadline, if: condition) ? 1 : 0
        }
    }
}

/// How the operations change an entry.
extension EntryOperation {
    /// Removes the entry of a key, even if it is stale, so that FETCH does not return it. Ends the lease of the key.
    /// - Returns: whether the removed entry was fresh.
    static func remove(_ update: Update, _ index: Int) -> Bool {
        defer { update.removeStored(index) }
        return update.isFresh(index)
    }

    /// Adds a number to the value of a key. A key without an entry counts as 0.
    /// - Returns: the sum, which is the new value.
    static func add(_ amount: Int64, _ update: Update, _ index: Int) throws(CommandError) -> Int64 {
        guard let value = update.payload(index).map({ parseInteger($0) }) ?? 0 else { throw .notAnInteger }
        let (sum, overflows) = value.addingReportingOverflow(amount)
        guard !overflows else { throw CommandError("ERR increment or decrement would overflow") }
        withUnsafeTemporaryAllocation(byteCount: DecimalText.lengthMax, alignment: 1) { digits in
            guard let start = digits.baseAddress else { return }
            let count = DecimalText.write(sum, to: start)
            update.replace(index, payload: UnsafeRawBufferPointer(start: start, count: count))
        }
        return sum
    }

    // MARK: Deadlines

    /// Returns the remaining time until a deadline; ``noDeadline`` if the deadline is nil. A change of the policy can
    /// move a deadline into the past. The result is then 0, because negative replies have other meanings.
    static func remaining(_ deadline: Int64?, now: Int64, inSeconds: Bool) -> Int64 {
        guard let deadline else { return noDeadline }
        let left = max(0, deadline - now)
        // As in Redis, round to the nearest second.
        return inSeconds ? (left + 500) / 1000 : left
    }

    /// The reply to TTL and similar commands for an entry that never expires. `noEntry` is the reply without an entry.
    static let noDeadline: Int64 = -1
    static let noEntry: Int64 = -2

    struct Condition: OptionSet {
        let rawValue: Int
        static let absent = Condition(rawValue: 1)
        static let present = Condition(rawValue: 2)
        static let greater = Condition(rawValue: 4)
        static let less = Condition(rawValue: 8)
    }

    /// Sets the deadline of an entry if the entry exists and the condition holds.
    /// - Returns: whether the deadline was set.
    static func expire(_ update: Update, _ index: Int, at deadline: Int64, if condition: Condition) -> Bool {
        guard let header = update.header(index) else {
            if deadline <= update.now { update.removeEvicted(index) }
            return false
        }
        guard allows(condition, deadline, update.rules.deadline(header)) else { return false }
        if deadline <= update.now { update.remove(index) } else { update.set(index, .own(deadline)) }
        return true
    }

    /// Whether a condition allows a new deadline. As in Redis, an entry without a deadline counts as expiring last.
    private static func allows(_ condition: Condition, _ new: Int64, _ current: Int64?) -> Bool {
        if condition.contains(.absent), current != nil { return false }
        if condition.contains(.present), current == nil { return false }
        if condition.contains(.greater) {
            guard let current, new > current else { return false }
        }
        if condition.contains(.less), let current, new >= current { return false }
        return true
    }
}

extension EntryOperation.Condition {
    /// Parses the options of EXPIRE and similar commands.
    fileprivate init(_ words: some CommandWords) throws(CommandError) {
        self = []
        for index in 3..<words.count {
            if words.isWord(index, "NX") {
                insert(.absent)
            } else if words.isWord(index, "XX") {
                insert(.present)
            } else if words.isWord(index, "GT") {
                insert(.greater)
            } else if words.isWord(index, "LT") {
                insert(.less)
            } else {
                throw CommandError("ERR Unsupported option ", shown(words.bytes(index), 128), "")
            }
        }
        if contains(.absent), self != .absent {
            throw CommandError("ERR NX and XX, GT or LT options at the same time are not compatible")
        }
        if contains(.greater), contains(.less) {
            throw CommandError("ERR GT and LT options at the same time are not compatible")
        }
    }
}
