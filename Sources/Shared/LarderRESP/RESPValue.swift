// The values of a server's replies.

/// A reply of the server, or a part of one.
public enum RESPValue: Sendable, Equatable {
    /// A key of a map with its value.
    public struct Pair: Sendable, Equatable {
        /// The key.
        public var key: RESPValue
        /// The value of the key.
        public var value: RESPValue

        /// A pair of both.
        public init(key: RESPValue, value: RESPValue) {
            self.key = key
            self.value = value
        }
    }

    /// A short text without line ends, such as `OK`.
    case simpleString(String)
    /// The server refused. The first word is a code, such as `ERR` or `WRONGTYPE`.
    case error(String)
    /// A whole number.
    case integer(Int64)
    /// Any number of bytes of any kind.
    case bulk([UInt8])
    /// The absence of a value, or of an array.
    case null
    /// Replies in their order.
    case array([RESPValue])
    /// Pairs in the order in which they came. RESP2 servers send an array of alternating keys and values instead: see
    /// `pairs`.
    case map([Pair])
    /// Replies in no order.
    case set([RESPValue])
    /// A number that need not be whole.
    case double(Double)
    /// A boolean.
    case boolean(Bool)
    /// The decimal digits of a number that may be larger than 64 bits.
    case bigNumber(String)
    /// Text for people, with its format: `txt` or `mkd`.
    case verbatim(format: String, text: [UInt8])
    /// A message that no request asked for.
    case push([RESPValue])
}

extension RESPValue {
    /// The bytes of a string of any kind, or of a number's text. Nil for everything else, errors included.
    public var bytes: [UInt8]? {
        switch self {
        case .bulk(let bytes), .verbatim(_, let bytes): bytes
        case .simpleString(let text), .bigNumber(let text): Array(text.utf8)
        default: nil
        }
    }

    /// ``bytes`` as text. Nil also when they are not UTF-8.
    public var string: String? {
        switch self {
        case .simpleString(let text), .bigNumber(let text): text
        case .bulk(let bytes), .verbatim(_, let bytes): String(validating: bytes, as: UTF8.self)
        default: nil
        }
    }

    /// An integer, or a string that holds one. Nil for everything else.
    public var int: Int64? {
        if case .integer(let value) = self { return value }
        guard let bytes else { return nil }
        return bytes.withUnsafeBytes { text in
            text.baseAddress.flatMap { DecimalText.integer($0, count: text.count) }
        }
    }

    /// A number of any kind, or a string that holds one. Nil for everything else.
    public var double: Double? {
        switch self {
        case .double(let value): value
        case .integer(let value): Double(value)
        default: string.flatMap(DecimalText.double)
        }
    }

    /// A boolean, or the integers 1 and 0, which RESP2 uses instead. Nil for everything else.
    public var bool: Bool? {
        switch self {
        case .boolean(let value): value
        case .integer(1): true
        case .integer(0): false
        default: nil
        }
    }

    /// The elements of an array, a set or a push message. Nil for everything else.
    public var elements: [RESPValue]? {
        switch self {
        case .array(let elements), .set(let elements), .push(let elements): elements
        default: nil
        }
    }

    /// The pairs of a map, or of an array of alternating keys and values, which RESP2 uses instead. Nil for everything
    /// else.
    public var pairs: [Pair]? {
        if case .map(let pairs) = self { return pairs }
        guard let elements, elements.count.isMultiple(of: 2) else { return nil }
        return stride(from: 0, to: elements.count, by: 2).map {
            Pair(key: elements[$0], value: elements[$0 + 1])
        }
    }

    /// The text of an error. Nil for everything else.
    public var errorMessage: String? {
        if case .error(let message) = self { message } else { nil }
    }

    public var isNull: Bool { self == .null }
}
