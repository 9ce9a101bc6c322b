import LarderCommandCatalog
import LarderEngine
import LarderPlatform
import LarderRESP

/// Commands that treat a value as a number.
extension CommandTable {
    static let numberPlanners: Planners = [
        .incr: { _ in .apply(.add(1)) },
        .decr: { _ in .apply(.add(-1)) },
        .incrby: { words throws(CommandError) in .apply(.add(try words.integer(2))) },
        .decrby: decrby,
        .incrbyfloat: incrbyfloat,
    ]

    @Sendable private static func decrby(_ words: CallWords) throws(CommandError) -> EntryPlan {
        let amount = try words.integer(2)
        guard amount != .min else { throw CommandError("ERR decrement would overflow") }
        return .apply(.add(-amount))
    }

    @Sendable private static func incrbyfloat(_ words: CallWords) throws(CommandError) -> EntryPlan {
        let amount = LongDouble(words.bytes(2))
        return try .change(words) { (update, _) throws(CommandError) in
            var value: LongDouble? = LongDouble.zero
            if let payload = update.payload(0) { value = LongDouble(payload) }
            guard let value, let amount else { throw CommandError("ERR value is not a valid float") }
            let sum = value + amount
            guard sum.isDouble, let text = sum.text else {
                throw CommandError("ERR increment would produce NaN or Infinity")
            }
            var bytes = text
            bytes.withUTF8 { update.replace(0, payload: UnsafeRawBufferPointer($0)) }
            return .bulk(text)
        }
    }
}

/// C's type `long double`, which Redis uses for INCRBYFLOAT. It has 80 bits on x86. On other machines, Swift has no
/// such type, and 64 bits are used.
struct LongDouble: Comparable {
    #if arch(x86_64) && !os(Windows)
        typealias Value = Float80
    #else
        typealias Value = Double
    #endif

    let value: Value

    static let zero = LongDouble(value: 0)

    init(value: Value) { self.value = value }

    /// Whether the number is within the range of a double. Most clients could not parse the text of a larger number.
    var isDouble: Bool { Double(value).isFinite }

    static func < (left: LongDouble, right: LongDouble) -> Bool { left.value < right.value }

    static func + (left: LongDouble, right: LongDouble) -> LongDouble { LongDouble(value: left.value + right.value) }

    /// The maximum length of a text that is parsed as a number, in bytes.
    private static let textBytesMax = 5 * 1024 - 1

    /// Parses a number as C does. Returns nil if the text begins with white space, is not a number, or is NaN.
    init?(_ bytes: UnsafeRawBufferPointer) {
        guard let first = bytes.first, bytes.count <= Self.textBytesMax, !bytes.contains(0), isspace(Int32(first)) == 0
        else { return nil }
        let text = [UInt8](bytes) + [0]
        let read = text.withUnsafeBufferPointer { text -> Value? in
            // The text ends with a zero byte, so C's function does not read beyond it.
            text.withMemoryRebound(to: CChar.self) { text -> Value? in
                guard let start = text.baseAddress else { return nil }
                var end: UnsafeMutablePointer<CChar>?
                errno = 0
                #if arch(x86_64) && !os(Windows)
                    let value = strtold(start, &end)
                #else
                    let value = strtod(start, &end)
                #endif
                let isOutside = errno == ERANGE && (value.isInfinite || value.isZero)
                guard let end, end - UnsafeMutablePointer(mutating: start) == bytes.count, !isOutside else {
                    return nil
                }
                return value.isNaN ? nil : value
            }
        }
        guard let read else { return nil }
        value = read
    }

    /// The number in decimal notation, with at most 17 decimals, and no zeros at the end. Nil for NaN and infinity.
    var text: String? {
        guard value.isFinite else { return nil }
        // The text fits: the largest number has 4933 digits before the decimal point.
        let text = withUnsafeTemporaryAllocation(of: CChar.self, capacity: 5 * 1024) { space -> String? in
            #if arch(x86_64) && !os(Windows)
                let length = withVaList([value]) { vsnprintf(space.baseAddress, space.count, "%.17Lf", $0) }
            #else
                let length = withVaList([value]) { vsnprintf(space.baseAddress, space.count, "%.17f", $0) }
            #endif
            guard length > 0, Int(length) < space.count else { return nil }
            return String(decoding: UnsafeRawBufferPointer(space).prefix(Int(length)), as: UTF8.self)
        }
        guard var text else { return nil }
        if text.contains(".") {
            while text.hasSuffix("0") { text.removeLast() }
            if text.hasSuffix(".") { text.removeLast() }
        }
        return text == "-0" ? "0" : text
    }
}
