/// A glob pattern as in Redis: `*` is any bytes, `?` one byte, `[abc]`, `[a-z]`, `[^a]` a byte of a set, `\x` byte x.
///
/// After a mismatch, only the last `*` is extended by a byte. So the worst-case time is proportional to the product of
/// the two lengths, and never exponential.
package struct GlobPattern: Sendable {
    private enum Element: Sendable {
        case byte(UInt8)
        case any
        case many
        case set([ClosedRange<UInt8>], negated: Bool)

        func matches(_ byte: UInt8) -> Bool {
            switch self {
            case .byte(let wanted): byte == wanted
            case .any: true
            case .many: false
            case .set(let ranges, let negated): ranges.contains { $0.contains(byte) } != negated
            }
        }
    }

    private let elements: [Element]

    /// The bytes before the first special character: every matching text begins with them.
    package let fixedPrefix: [UInt8]

    /// Returns the pattern for all texts that begin with a prefix.
    package static func prefix(_ prefix: some Sequence<UInt8>) -> [UInt8] {
        prefix.flatMap { "*?[]\\^-".utf8.contains($0) ? [UInt8(ascii: "\\"), $0] : [$0] } + [UInt8(ascii: "*")]
    }

    package init(_ pattern: [UInt8]) {
        var elements: [Element] = []
        var rest = pattern[...]
        while let byte = rest.popFirst() {
            switch byte {
            case UInt8(ascii: "*"):
                if case .many = elements.last { continue }
                elements.append(.many)
            case UInt8(ascii: "?"): elements.append(.any)
            case UInt8(ascii: "["): elements.append(Self.set(&rest))
            case UInt8(ascii: "\\"): elements.append(.byte(rest.popFirst() ?? byte))
            default: elements.append(.byte(byte))
            }
        }
        self.elements = elements
        var prefix: [UInt8] = []
        for case .byte(let byte) in elements.prefix(while: { if case .byte = $0 { true } else { false } }) {
            prefix.append(byte)
        }
        fixedPrefix = prefix
    }

    /// Parses a set of bytes after its `[`. If `]` is missing, the set extends to the end of the pattern.
    private static func set(_ rest: inout ArraySlice<UInt8>) -> Element {
        let isNegated = rest.first == UInt8(ascii: "^")
        if isNegated { rest.removeFirst() }
        var ranges: [ClosedRange<UInt8>] = []
        while var byte = rest.popFirst(), byte != UInt8(ascii: "]") {
            if byte == UInt8(ascii: "\\"), let escaped = rest.popFirst() {
                byte = escaped
            } else if rest.first == UInt8(ascii: "-"), rest.count >= 2 {
                rest.removeFirst()
                let end = rest.removeFirst()
                ranges.append(min(byte, end)...max(byte, end))
                continue
            }
            ranges.append(byte...byte)
        }
        return .set(ranges, negated: isNegated)
    }

    package func matches(_ text: [UInt8]) -> Bool {
        var position = 0
        var element = 0
        var retry: (element: Int, position: Int)?
        while position < text.count {
            if element < elements.count, case .many = elements[element] {
                retry = (element, position)
                element += 1
            } else if element < elements.count, elements[element].matches(text[position]) {
                element += 1
                position += 1
            } else if let last = retry {
                retry = (last.element, last.position + 1)
                element = last.element + 1
                position = last.position + 1
            } else {
                return false
            }
        }
        return elements[element...].allSatisfy { if case .many = $0 { true } else { false } }
    }
}
