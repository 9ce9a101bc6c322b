import LarderEngine
import LarderRESP

/// How the commands for counters, locks and rate limits change an entry. The commands' handlers, the fast path and
/// scripts all use this implementation.
enum EntryChanges {
    /// Removes the entry of a key, even a stale one that FETCH could still serve. Ends the lease of the key.
    /// - Returns: whether the removed entry was fresh.
    static func remove(_ update: Update, _ index: Int) -> Bool {
        defer { update.removeStored(index) }
        return update.isFresh(index)
    }

    /// Adds a number to the value of a key. If there is no entry, its value counts as 0.
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

    /// Returns the remaining time until a deadline, or ``noDeadline``. If a change of the policy has just made the
    /// entry expire, returns 0, because negative replies have other meanings.
    static func remaining(_ deadline: Int64?, now: Int64, inSeconds: Bool) -> Int64 {
        guard let deadline else { return noDeadline }
        let left = max(0, deadline - now)
        // As in Redis, round to the nearest second.
        return inSeconds ? (left + 500) / 1000 : left
    }

    /// The replies to TTL and similar commands for an entry that never expires, and for a key without an entry.
    static let noDeadline: Int64 = -1
    static let noEntry: Int64 = -2

    struct Condition: OptionSet {
        let rawValue: Int
        static let absent = Condition(rawValue: 1)
        static let present = Condition(rawValue: 2)
        static let greater = Condition(rawValue: 4)
        static let less = Condition(rawValue: 8)
    }

    /// Sets the deadline of an entry, if there is an entry and the condition holds.
    /// - Returns: whether the deadline was set.
    static func expire(_ update: Update, _ index: Int, at deadline: Int64, if condition: Condition) -> Bool {
        guard let header = update.header(index) else { return false }
        guard allows(condition, deadline, update.rules.deadline(header)) else { return false }
        if deadline <= update.now { update.remove(index) } else { update.set(index, .own(deadline)) }
        return true
    }

    /// Whether a condition allows a new deadline. As in Redis, an entry without a deadline has the latest possible one.
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
