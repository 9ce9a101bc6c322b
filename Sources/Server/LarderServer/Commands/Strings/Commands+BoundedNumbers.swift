import LarderCommandCatalog
import LarderEngine
import LarderRESP

/// INCREX, which Redis has since version 8.8: adds to a number within bounds, and sets the entry's deadline.
extension CommandTable {
    static let boundedNumberPlanners: Planners = [.increx: increx]

    @Sendable private static func increx(_ words: CallWords) throws(CommandError) -> EntryPlan {
        let options = try IncreaseOptions(words)
        return options.isDecimal
            ? try increase(words, options, as: LongDouble.self) : try increase(words, options, as: Int64.self)
    }

    private static func increase<Number: BoundedNumber>(
        _ words: CallWords, _ options: IncreaseOptions, as type: Number.Type
    ) throws(CommandError) -> EntryPlan {
        func number(_ index: Int?, _ name: String, else absent: Number) throws(CommandError) -> Number {
            guard let index else { return absent }
            guard let number = Number(words.bytes(index)) else { throw CommandError("ERR \(name) is not \(type.noun)") }
            return number
        }
        let amount = try number(options.amount, "Increment", else: .one)
        guard amount.isWithinLimits else { throw CommandError("ERR BYFLOAT increment cannot be Infinity") }
        let lower = try number(options.lower, "LBOUND", else: .least)
        let upper = try number(options.upper, "UBOUND", else: .greatest)
        guard lower <= upper else { throw CommandError("ERR LBOUND can't be greater than UBOUND") }
        let rule = try options.rule(words)
        return try .change(words) { (update, _) throws(CommandError) in
            var before = Number.zero
            if let payload = update.payload(0) {
                guard let number = Number(payload) else { throw CommandError("ERR value is not \(type.noun)") }
                before = number
            }
            guard before.isWithinLimits else { throw CommandError("ERR value cannot be Infinity") }
            let (sum, isOutside) = before.adding(amount)
            let after = min(max(sum, lower), upper)
            guard !isOutside && after == sum || options.saturates else {
                return .written { Number.write(before, .zero, to: &$0) }
            }
            guard let added = after.subtracting(before), after.isWithinLimits else {
                throw CommandError("ERR applied increment would overflow")
            }
            store(after.digits, Number.tag, options.isOnlyFirst && update.deadline(0) != nil ? nil : rule, in: update)
            return .written { Number.write(after, added, to: &$0) }
        }
    }

    /// - Parameter rule: the new deadline; nil to keep the current one.
    private static func store(_ digits: String, _ tag: WriteTag, _ rule: DeadlineRule?, in update: Update) {
        if case .own(let deadline) = rule, deadline <= update.now {
            if update.isFresh(0) { update.remove(0) } else { update.removeEvicted(0) }
            return
        }
        var digits = digits
        update.origin.tag = tag.rawValue
        digits.withUTF8 { update.replace(0, payload: UnsafeRawBufferPointer($0)) }
        guard let rule else { return }
        // A second change of the entry, with an event of its own, as in Redis.
        if case .own = rule {
            update.origin.tag = WriteTag.expire.rawValue
            update.set(0, rule)
        } else {
            update.origin.tag = WriteTag.persist.rawValue
            _ = update.persist(0)
        }
    }
}

/// The options of INCREX, in any order. The numbers are positions of words.
private struct IncreaseOptions {
    private(set) var isDecimal = false
    private(set) var amount: Int?
    private(set) var lower: Int?
    private(set) var upper: Int?
    /// Whether a sum outside the bounds is replaced by the bound. Otherwise the number is not changed.
    private(set) var saturates = false
    /// Whether an entry that has a deadline keeps it.
    private(set) var isOnlyFirst = false
    private var expiry: (form: ExpiryForm, index: Int)?
    private var isPersistent = false

    init(_ words: CallWords) throws(CommandError) {
        var options = OptionReader(words, from: 2)
        while let option = options.next() {
            switch option {
            case "byint" where amount == nil: amount = try options.value()
            case "byfloat" where amount == nil: (isDecimal, amount) = (true, try options.value())
            case "lbound" where lower == nil: lower = try options.value()
            case "ubound" where upper == nil: upper = try options.value()
            case "saturate" where !saturates: saturates = true
            case "enx" where !isOnlyFirst: isOnlyFirst = true
            case "persist" where !isPersistent: isPersistent = true
            case "ex" where expiry == nil: expiry = (.seconds, try options.value())
            case "px" where expiry == nil: expiry = (.milliseconds, try options.value())
            case "exat" where expiry == nil: expiry = (.unixSeconds, try options.value())
            case "pxat" where expiry == nil: expiry = (.unixMilliseconds, try options.value())
            default: throw .syntax
            }
        }
        guard !isPersistent || expiry == nil && !isOnlyFirst else { throw .syntax }
        guard !isOnlyFirst || expiry != nil else {
            throw CommandError("ERR ENX flag requires an expiration: EX, PX, EXAT or PXAT")
        }
    }

    /// The entry's new deadline; nil to keep the current one.
    func rule(_ words: CallWords) throws(CommandError) -> DeadlineRule? {
        guard let expiry else { return isPersistent ? .ownNever : nil }
        return .own(try expiry.form.deadline(try words.integer(expiry.index), words, positive: true))
    }
}

/// A number to which INCREX adds.
private protocol BoundedNumber: Comparable {
    static var zero: Self { get }
    static var one: Self { get }
    static var least: Self { get }
    static var greatest: Self { get }
    /// What a text is that can be parsed, for an error.
    static var noun: String { get }
    static var tag: WriteTag { get }

    init?(_ text: UnsafeRawBufferPointer)
    var isWithinLimits: Bool { get }
    /// Returns the sum, and whether it exceeds the limits of the type. If so, the sum is that limit.
    func adding(_ amount: Self) -> (Self, isOutside: Bool)
    /// Returns the difference; nil if it exceeds the limits of the type.
    func subtracting(_ other: Self) -> Self?
    var digits: String { get }
    /// Writes INCREX's reply.
    static func write(_ value: Self, _ added: Self, to replies: inout ReplyBuffer)
}

extension Int64: BoundedNumber {
    fileprivate static var one: Int64 { 1 }
    fileprivate static var least: Int64 { .min }
    fileprivate static var greatest: Int64 { .max }
    fileprivate static var noun: String { "an integer or out of range" }
    fileprivate static var tag: WriteTag { .incrby }

    fileprivate init?(_ text: UnsafeRawBufferPointer) {
        guard let number = parseInteger(text) else { return nil }
        self = number
    }

    fileprivate var isWithinLimits: Bool { true }

    fileprivate func adding(_ amount: Int64) -> (Int64, isOutside: Bool) {
        let (sum, overflows) = addingReportingOverflow(amount)
        return overflows ? (amount < 0 ? .min : .max, true) : (sum, false)
    }

    fileprivate func subtracting(_ other: Int64) -> Int64? {
        let (difference, overflows) = subtractingReportingOverflow(other)
        return overflows ? nil : difference
    }

    fileprivate var digits: String { String(self) }

    fileprivate static func write(_ value: Int64, _ added: Int64, to replies: inout ReplyBuffer) {
        replies.array(count: 2)
        replies.integer(value)
        replies.integer(added)
    }
}

extension LongDouble: BoundedNumber {
    fileprivate static var one: LongDouble { LongDouble(value: 1) }
    // Like INCRBYFLOAT, limited to the range of a double.
    fileprivate static var least: LongDouble { LongDouble(value: Value(-Double.greatestFiniteMagnitude)) }
    fileprivate static var greatest: LongDouble { LongDouble(value: Value(Double.greatestFiniteMagnitude)) }
    fileprivate static var noun: String { "a valid float" }
    fileprivate static var tag: WriteTag { .incrbyfloat }

    fileprivate var isWithinLimits: Bool { isDouble }

    fileprivate func adding(_ amount: LongDouble) -> (LongDouble, isOutside: Bool) {
        let sum = self + amount
        return sum.isDouble ? (sum, false) : (amount.value < 0 ? .least : .greatest, true)
    }

    fileprivate func subtracting(_ other: LongDouble) -> LongDouble? {
        let difference = LongDouble(value: value - other.value)
        return difference.isDouble ? difference : nil
    }

    /// Only for numbers within the limits.
    fileprivate var digits: String { text ?? "0" }

    fileprivate static func write(_ value: LongDouble, _ added: LongDouble, to replies: inout ReplyBuffer) {
        replies.array(count: 2)
        for number in [value, added] {
            if replies.version == .two { replies.bulk(number.digits) } else { replies.double(Double(number.value)) }
        }
    }
}
