import LarderJSONCoding
import LarderPlatform

/// A number of a JSON text with its exact value: numbers without a fraction are integers if they have at most 38 digits.
/// So equal numbers have equal values here, and the order of all numbers is total.
package enum QueryNumber: Hashable, Sendable {
    case integer(Int128)
    /// Has a fraction, or does not fit into 128 bits; perhaps infinite, if the text is too large for a double.
    case real(Double)

    package init(_ value: Double) {
        // Doubles of this size are integers.
        if value == value.rounded(), let integer = Int128(exactly: value) {
            self = .integer(integer)
        } else {
            self = .real(value)
        }
    }

    init(_ document: borrowing JSONDocument, _ node: Int) {
        if let integer = document.integer(node) {
            self = .integer(Int128(integer))
            return
        }
        let text = String(decoding: document.content(node), as: UTF8.self)
        if document.isInteger(node), let integer = Int128(text) {
            self = .integer(integer)
        } else {
            // Swift returns infinity for numbers that are too large, and 0 for those that are too small.
            self.init(Double(text) ?? 0)
        }
    }

    package var double: Double {
        switch self {
        // Conversions of 128 bits are slow.
        case .integer(let value): Int64(exactly: value).map { Double($0) } ?? Double(value)
        case .real(let value): value
        }
    }

    /// Whether the number certainly equals its double.
    var isDouble: Bool {
        switch self {
        case .integer(let value): (-(1 << 53)...(1 << 53)).contains(value)
        case .real: true
        }
    }

    package func order(_ other: QueryNumber) -> Int {
        switch (self, other) {
        case (.integer(let left), .integer(let right)): left < right ? -1 : left == right ? 0 : 1
        case (.real(let left), .real(let right)): left < right ? -1 : left == right ? 0 : 1
        case (.integer(let left), .real(let right)): Self.order(left, right)
        case (.real(let left), .integer(let right)): -Self.order(right, left)
        }
    }

    /// A real number never equals an integer.
    private static func order(_ integer: Int128, _ real: Double) -> Int {
        guard let below = Int128(exactly: real.rounded(.down)) else { return real > 0 ? -1 : 1 }
        return integer <= below ? -1 : 1
    }

    /// The number as JSON; equal numbers have the same text.
    package var text: String {
        switch self {
        case .integer(let value): "\(value)"
        case .real(let value): value.isFinite ? "\(value)" : value > 0 ? "1e999" : "-1e999"
        }
    }
}

/// A value that can be compared: of a document, of a query, or of an entry's metadata. The cases have the order of all
/// values; all arrays and objects are equal in this order.
package enum QueryValue: Hashable, Sendable {
    case missing, null, no, yes
    case number(QueryNumber)
    case text([UInt8])
    case container

    /// Passes the value to `body` without a copy.
    func withView<Result>(_ body: (ValueView) throws -> Result) rethrows -> Result {
        switch self {
        case .missing: try body(.missing)
        case .null: try body(.null)
        case .no: try body(.no)
        case .yes: try body(.yes)
        case .number(let number): try body(.number(number))
        case .text(let bytes): try bytes.withUnsafeBytes { try body(.text($0)) }
        case .container: try body(.container)
        }
    }

    /// Less than 0 if this value precedes the other one, 0 if both are equal.
    package func order(_ other: QueryValue) -> Int { withView { view in other.withView { view.order($0) } } }

    /// A hash that is the same for equal values.
    package var equalityHash: Int { withView(\.equalityHash) }
}

/// A ``QueryValue`` whose text is borrowed: valid only during the call that it is passed to.
enum ValueView {
    case missing, null, no, yes
    case number(QueryNumber)
    case text(UnsafeRawBufferPointer)
    case container

    private var rank: Int {
        switch self {
        case .missing: 0
        case .null: 1
        case .no: 2
        case .yes: 3
        case .number: 4
        case .text: 5
        case .container: 6
        }
    }

    /// Whether both values have the same type, so that comparisons apply.
    func isComparable(_ other: ValueView) -> Bool {
        switch (self, other) {
        case (.no, .yes), (.yes, .no): true
        default: rank == other.rank
        }
    }

    func order(_ other: ValueView) -> Int {
        switch (self, other) {
        case (.number(let left), .number(let right)): left.order(right)
        case (.text(let left), .text(let right)): ByteOrder.compare(left, right)
        default: rank - other.rank
        }
    }

    var equalityHash: Int {
        var hasher = Hasher()
        switch self {
        case .number(let number): hasher.combine(number)
        case .text(let bytes): hasher.combine(bytes: bytes)
        default: hasher.combine(rank)
        }
        return hasher.finalize()
    }

    var value: QueryValue {
        switch self {
        case .missing: .missing
        case .null: .null
        case .no: .no
        case .yes: .yes
        case .number(let number): .number(number)
        case .text(let bytes): .text([UInt8](bytes))
        case .container: .container
        }
    }
}

extension JSONDocument {
    /// Passes a value of the document to `body`.
    func withView<Result>(_ node: Int, _ body: (ValueView) throws -> Result) rethrows -> Result {
        switch kind(node) {
        case .null: return try body(.null)
        case .no: return try body(.no)
        case .yes: return try body(.yes)
        case .number: return try body(.number(QueryNumber(self, node)))
        case .string:
            guard hasEscapes(node) else { return try body(.text(UnsafeRawBufferPointer(content(node)))) }
            var text = string(node)
            return try text.withUTF8 { try body(.text(UnsafeRawBufferPointer($0))) }
        case .object, .array: return try body(.container)
        }
    }

    func value(_ node: Int) -> QueryValue { withView(node) { $0.value } }

    /// Calls `body` with each element of an array until it returns false.
    func forEachElement(_ array: Int, _ body: (Int) throws -> Bool) rethrows {
        var element = array + 1
        while element < next(array), try body(element) { element = next(element) }
    }

    /// Calls `body` with each element of an array, or with a value that is no array.
    func forEachValue(of node: Int, _ body: (Int) -> Void) {
        guard kind(node) == .array else { return body(node) }
        forEachElement(node) { element in
            body(element)
            return true
        }
    }

    /// Whether an element of an array, or a value that is no array, passes a test.
    func hasValue(of node: Int, where passes: (Int) -> Bool) -> Bool {
        guard kind(node) == .array else { return passes(node) }
        var isFound = false
        forEachElement(node) { element in
            isFound = passes(element)
            return !isFound
        }
        return isFound
    }

    /// A JSON text of a value that is the same for equal values: with sorted members, and without white space.
    package func canonicalText(_ node: Int) -> [UInt8] {
        var text: [UInt8] = []
        appendCanonicalText(node, to: &text)
        return text
    }

    private func appendCanonicalText(_ node: Int, to text: inout [UInt8]) {
        switch kind(node) {
        case .null, .no, .yes: text += bytes(node)
        case .number: text += QueryNumber(self, node).text.utf8
        case .string: text += JSONText.quoted(string(node)).bytes
        case .array:
            text.append(UInt8(ascii: "["))
            forEachElement(node) { element in
                if element > node + 1 { text.append(UInt8(ascii: ",")) }
                appendCanonicalText(element, to: &text)
                return true
            }
            text.append(UInt8(ascii: "]"))
        case .object:
            let members = valuesByName(node).sorted { $0.key.lexicographicallyPrecedes($1.key) }
            text.append(UInt8(ascii: "{"))
            for (index, member) in members.enumerated() {
                if index > 0 { text.append(UInt8(ascii: ",")) }
                text += JSONText.quoted(String(decoding: member.key, as: UTF8.self)).bytes
                text.append(UInt8(ascii: ":"))
                appendCanonicalText(member.value, to: &text)
            }
            text.append(UInt8(ascii: "}"))
        }
    }
}

extension QueryValue {
    /// The value as JSON; nil for missing values, arrays and objects. Bytes of keys that are not UTF-8 are replaced.
    package var json: [UInt8]? {
        switch self {
        case .missing, .container: nil
        case .null: Array("null".utf8)
        case .no: Array("false".utf8)
        case .yes: Array("true".utf8)
        case .number(let number): Array(number.text.utf8)
        case .text(let bytes): JSONText.quoted(String(decoding: bytes, as: UTF8.self)).bytes
        }
    }
}
