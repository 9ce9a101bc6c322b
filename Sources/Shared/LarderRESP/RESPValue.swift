// The values of a server's replies.

/// A reply of a RESP server, or a part of one.
public enum RESPValue: Sendable, Equatable {
    /// A key of a map, and the value of this key.
    public struct Pair: Sendable, Equatable {
        /// The key.
        public var key: RESPValue
        /// The value of the key.
        public var value: RESPValue

        /// Creates a pair.
        public init(key: RESPValue, value: RESPValue) { (self.key, self.value) = (key, value) }
    }

    /// A short text without line ends, such as `OK`.
    case simpleString(String)
    /// An error message. The first word is usually a code, such as `ERR` or `WRONGTYPE`.
    case error(String)
    /// A 64-bit integer.
    case integer(Int64)
    /// A string of arbitrary bytes.
    case bulk([UInt8])
    /// No value: the null bulk string or null array of RESP2, and the null of RESP3.
    case null
    /// An ordered list of values.
    case array([RESPValue])
    /// A map, in the order in which the server sent its pairs. RESP2 servers send an array of alternating keys and
    /// values instead: see `pairs`.
    case map([Pair])
    /// A set: values whose order has no meaning.
    case set([RESPValue])
    /// A floating-point number.
    case double(Double)
    /// A boolean.
    case boolean(Bool)
    /// An integer of any size, as decimal digits with an optional sign.
    case bigNumber(String)
    /// A text for people, with its format: `txt` (plain) or `mkd` (Markdown).
    case verbatim(format: String, text: [UInt8])
    /// A push message: the server sends it without a request, for example an invalidation.
    case push([RESPValue])
}

extension RESPValue {
    /// The bytes of a simple, bulk or verbatim string, or the digits of a big number. Nil for other values and errors.
    public var bytes: [UInt8]? {
        switch self {
        case .bulk(let bytes), .verbatim(_, let bytes): bytes
        case .simpleString(let text), .bigNumber(let text): Array(text.utf8)
        default: nil
        }
    }

    /// The ``bytes`` as text. Nil for all other values, and for bytes that are not UTF-8.
    public var string: String? {
        switch self {
        case .simpleString(let text), .bigNumber(let text): text
        case .bulk(let bytes), .verbatim(_, let bytes): String(validating: bytes, as: UTF8.self)
        default: nil
        }
    }

    /// The value of an integer, or of a string that contains an integer. Nil for all other values.
    public var int: Int64? {
        if case .integer(let value) = self { return value }
        guard let bytes else { return nil }
        return bytes.withUnsafeBytes { text in
            text.baseAddress.flatMap { DecimalText.integer($0, count: text.count) }
        }
    }

    /// The value of a number, or of a string that contains a number. Nil for all other values.
    public var double: Double? {
        switch self {
        case .double(let value): value
        case .integer(let value): Double(value)
        default: string.flatMap(DecimalText.double)
        }
    }

    /// The value of a boolean, or of the integers 1 and 0, which RESP2 uses instead. Nil for all other values.
    public var bool: Bool? {
        switch self {
        case .boolean(let value): value
        case .integer(1): true
        case .integer(0): false
        default: nil
        }
    }

    /// The elements of an array, a set or a push message. Nil for all other values.
    public var elements: [RESPValue]? {
        switch self {
        case .array(let elements), .set(let elements), .push(let elements): elements
        default: nil
        }
    }

    /// The pairs of a map, or of an array of alternating keys and values, as in RESP2. Nil for all other values.
    public var pairs: [Pair]? {
        if case .map(let pairs) = self { return pairs }
        guard let elements, elements.count.isMultiple(of: 2) else { return nil }
        return stride(from: 0, to: elements.count, by: 2).map {
            Pair(key: elements[$0], value: elements[$0 + 1])
        }
    }

    /// The text of an error. Nil for all other values.
    public var errorMessage: String? {
        if case .error(let message) = self { message } else { nil }
    }

    public var isNull: Bool { self == .null }
}
