/// A JSON value as a tree: what the oracle of the tests evaluates.
package indirect enum QueryTree: Equatable {
    case null
    case bool(Bool)
    case integer(Int)
    case real(Double)
    case text(String)
    case array([QueryTree])
    case object([String: QueryTree])

    // MARK: Random values

    package static let names = ["a", "b", "c", "d\u{e9}"]
    package static let texts = ["", "x", "xy", "Bo", "b\u{f6}", "z\u{1F41F}", "1", "true", "a\"b\\", "e\u{301}"]

    package static func scalar(_ random: inout SeededGenerator) -> QueryTree {
        switch Int.random(in: 0..<8, using: &random) {
        case 0: .null
        case 1: .bool(.random(using: &random))
        case 2, 3: .integer(.random(in: -3...3, using: &random))
        case 4: .real([0.5, -0.5, 2.0, 1e300, 9_007_199_254_740_992].randomElement(using: &random) ?? 0)
        case 5:
            .integer(
                [9_007_199_254_740_993, 9_007_199_254_740_992, .max, .min, .max - 1].randomElement(using: &random) ?? 0)
        default: .text(texts.randomElement(using: &random) ?? "")
        }
    }

    package static func value(_ random: inout SeededGenerator, depth: Int = 0) -> QueryTree {
        switch depth < 3 ? Int.random(in: 0..<10, using: &random) : 9 {
        case 0, 1, 2:
            return .array((0..<Int.random(in: 0...3, using: &random)).map { _ in value(&random, depth: depth + 1) })
        case 3: return object(&random, depth: depth + 1)
        default: return scalar(&random)
        }
    }

    package static func object(_ random: inout SeededGenerator, depth: Int = 0) -> QueryTree {
        var members: [String: QueryTree] = [:]
        for name in names where Int.random(in: 0..<3, using: &random) > 0 {
            members[name] = value(&random, depth: depth)
        }
        return .object(members)
    }

    // MARK: Text

    /// The value as JSON, with random white space, escapes and forms of numbers.
    package func json(_ random: inout SeededGenerator) -> String {
        let space = ["", "", " ", "\n\t"].randomElement(using: &random) ?? ""
        switch self {
        case .null: return space + "null" + space
        case .bool(let value): return space + "\(value)" + space
        case .integer(let value):
            let isSmall = value != 0 && abs(Double(value)) < 1000
            let forms = isSmall ? ["\(value)", "\(value).0", "\(value)e0", "\(value)0e-1"] : ["\(value)"]
            return space + (forms.randomElement(using: &random) ?? "") + space
        case .real(let value): return space + "\(value)" + space
        case .text(let text): return space + Self.quoted(text, &random) + space
        case .array(let elements):
            return "[" + elements.map { $0.json(&random) }.joined(separator: ",") + space + "]"
        case .object(let members):
            let parts = members.shuffled(using: &random).map { name, value in
                space + Self.quoted(name, &random) + space + ":" + value.json(&random)
            }
            return "{" + parts.joined(separator: ",") + space + "}"
        }
    }

    private static func quoted(_ text: String, _ random: inout SeededGenerator) -> String {
        var quoted = "\""
        for unit in text.unicodeScalars {
            let mustEscape = unit == "\"" || unit == "\\"
            if mustEscape || Int.random(in: 0..<8, using: &random) == 0 {
                for code in String(unit).utf16 {
                    let digits = String(code, radix: 16)
                    quoted += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
                }
            } else {
                quoted.unicodeScalars.append(unit)
            }
        }
        return quoted + "\""
    }

    // MARK: Reading

    /// The value at a path; nil if it is missing.
    package subscript(path: String) -> QueryTree? {
        var value = self
        for step in path.split(separator: ".").map(String.init) {
            switch value {
            case .object(let members):
                guard let member = members.first(where: { $0.key.utf8.elementsEqual(step.utf8) }) else { return nil }
                value = member.value
            case .array(let elements):
                guard let index = Int(step), elements.indices.contains(index) else { return nil }
                value = elements[index]
            default: return nil
            }
        }
        return value
    }

    /// 1 null, 2 booleans, 3 numbers, 4 texts, 5 arrays and objects.
    package var type: Int {
        switch self {
        case .null: 1
        case .bool: 2
        case .integer, .real: 3
        case .text: 4
        case .array, .object: 5
        }
    }

    /// Less than 0, 0 or more than 0, in the order of all values.
    package static func order(_ left: QueryTree?, _ right: QueryTree?) -> Int {
        guard let left, let right else { return (left == nil ? 0 : 1) - (right == nil ? 0 : 1) }
        guard left.type == right.type else { return left.type - right.type }
        switch (left, right) {
        case (.bool(let left), .bool(let right)): return (left ? 1 : 0) - (right ? 1 : 0)
        case (.integer(let left), .integer(let right)): return left < right ? -1 : left > right ? 1 : 0
        case (.integer(let left), .real(let right)): return order(left, right)
        case (.real(let left), .integer(let right)): return -order(right, left)
        case (.real(let left), .real(let right)): return left < right ? -1 : left > right ? 1 : 0
        case (.text(let left), .text(let right)):
            if left.utf8.elementsEqual(right.utf8) { return 0 }
            return left.utf8.lexicographicallyPrecedes(right.utf8) ? -1 : 1
        default: return 0
        }
    }

    private static func order(_ integer: Int, _ real: Double) -> Int {
        if abs(real) >= 0x1p63 { return real > 0 ? -1 : 1 }
        let whole = Int(real.rounded(.down))
        if integer != whole { return integer < whole ? -1 : 1 }
        return real > real.rounded(.down) ? -1 : 0
    }

    package static func isEqual(_ left: QueryTree, _ right: QueryTree) -> Bool {
        switch (left, right) {
        case (.array(let left), .array(let right)):
            return left.count == right.count && zip(left, right).allSatisfy { isEqual($0, $1) }
        case (.object(let left), .object(let right)):
            return left.count == right.count
                && left.allSatisfy { name, value in right[name].map { isEqual(value, $0) } ?? false }
        case (.array, .object), (.object, .array): return false
        default: return order(left, right) == 0
        }
    }

    /// The values that a condition looks at: the elements of an array, or the value itself.
    package var elements: [QueryTree] { if case .array(let elements) = self { elements } else { [self] } }

    /// The value to sort by.
    package static func sortValue(_ value: QueryTree?, descending: Bool) -> QueryTree? {
        guard case .array(let elements)? = value, var best = elements.first else { return value }
        for element in elements where descending ? order(element, best) > 0 : order(element, best) < 0 {
            best = element
        }
        return best
    }
}
