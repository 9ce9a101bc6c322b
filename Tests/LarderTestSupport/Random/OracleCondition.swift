/// A random condition: its words, and a function that evaluates it on trees.
package struct OracleCondition {
    package let words: [String]
    package let holds: (_ document: QueryTree, _ key: String) -> Bool

    private static let paths = ["a", "b", "c", "d\u{e9}", "a.b", "a.0", "b.c.a", "a.1.b", "nosuch"]

    package static func random(_ random: inout SeededGenerator, depth: Int = 0) -> OracleCondition {
        switch random.below(depth > 3 ? 6 : 10) {
        case 6:
            let inner = Self.random(&random, depth: depth + 1)
            return OracleCondition(words: ["NOT", "("] + inner.words + [")"]) { !inner.holds($0, $1) }
        case 7:
            let (left, right) = (Self.random(&random, depth: depth + 1), Self.random(&random, depth: depth + 1))
            return OracleCondition(words: ["("] + left.words + [")", "AND", "("] + right.words + [")"]) {
                left.holds($0, $1) && right.holds($0, $1)
            }
        case 8:
            let (left, right) = (Self.random(&random, depth: depth + 1), Self.random(&random, depth: depth + 1))
            return OracleCondition(words: ["("] + left.words + [")", "OR", "("] + right.words + [")"]) {
                left.holds($0, $1) || right.holds($0, $1)
            }
        case 9:
            // a OR b AND NOT c, without parentheses.
            let parts = (0..<3).map { _ in test(&random) }
            let words = parts[0].words + ["or"] + parts[1].words + ["And", "not"] + parts[2].words
            return OracleCondition(words: words) {
                parts[0].holds($0, $1) || (parts[1].holds($0, $1) && !parts[2].holds($0, $1))
            }
        default: return test(&random)
        }
    }

    /// A value and its words.
    private static func operand(_ random: inout SeededGenerator) -> (words: [String], value: QueryTree) {
        if random.oneIn(6) {
            let value = QueryTree.value(&random, depth: 2)
            return (["JSON", value.json(&random)], value)
        }
        let value = QueryTree.scalar(&random)
        switch value {
        case .text(let text):
            let isJSON = ["1", "true"].contains(text)
            return (isJSON || random.oneIn(2) ? ["STR", text] : [text], value)
        case .integer(let number): return (["\(number)"], value)
        case .real(let number): return (["\(number)"], value)
        case .bool(let bool): return (["\(bool)"], value)
        default: return (["null"], value)
        }
    }

    private static func test(_ random: inout SeededGenerator) -> OracleCondition {
        let path = random.oneIn(12) ? "@key" : paths.randomElement(using: &random) ?? "a"
        func make(_ words: [String], _ passes: @escaping (QueryTree?) -> Bool) -> OracleCondition {
            OracleCondition(words: [path] + words) { passes(path == "@key" ? .text($1) : $0[path]) }
        }
        /// Compares within one type, any element of an array.
        func any(_ words: [String], _ passes: @escaping (QueryTree) -> Bool) -> OracleCondition {
            make(words) { $0?.elements.contains(where: passes) ?? false }
        }
        func equals(_ value: QueryTree?, _ operand: QueryTree) -> Bool {
            guard let value else { return false }
            return QueryTree.isEqual(value, operand)
                || value.elements.contains { QueryTree.isEqual($0, operand) }
        }
        let (words, value) = operand(&random)
        switch random.below(14) {
        case 0, 1: return make(["="] + words) { equals($0, value) }
        case 2: return make(["!="] + words) { !equals($0, value) }
        case 3: return any(["<"] + words) { $0.type == value.type && QueryTree.order($0, value) < 0 }
        case 4: return any(["<="] + words) { $0.type == value.type && QueryTree.order($0, value) <= 0 }
        case 5: return any([">"] + words) { $0.type == value.type && QueryTree.order($0, value) > 0 }
        case 6: return any([">="] + words) { $0.type == value.type && QueryTree.order($0, value) >= 0 }
        case 7:
            let (upperWords, upper) = operand(&random)
            return any(["BETWEEN"] + words + upperWords) {
                $0.type == value.type && $0.type == upper.type && QueryTree.order($0, value) >= 0
                    && QueryTree.order($0, upper) <= 0
            }
        case 8, 9:
            let others = (0..<random.below(4)).map { _ in operand(&random) }
            let list = ["\(others.count + 1)"] + words + others.flatMap(\.words)
            let values = [value] + others.map(\.value)
            if random.oneIn(3) {
                return make(["NOT", "IN"] + list) { found in !values.contains { equals(found, $0) } }
            }
            return make(["in"] + list) { found in values.contains { equals(found, $0) } }
        case 10:
            let other = operand(&random)
            return make(["ALL", "2"] + words + other.words) { found in
                guard let elements = found?.elements else { return false }
                return [value, other.value].allSatisfy { wanted in
                    elements.contains { QueryTree.isEqual($0, wanted) }
                }
            }
        case 11:
            let prefix = ["", "x", "b\u{f6}", "1"].randomElement(using: &random) ?? ""
            return any(["PREFIX", prefix]) {
                if case .text(let text) = $0 { text.utf8.starts(with: prefix.utf8) } else { false }
            }
        case 12: return like(&random, any)
        default: return random.oneIn(2) ? make(["EXISTS"]) { $0 != nil } : make(["missing"]) { $0 == nil }
        }
    }

    private static func like(
        _ random: inout SeededGenerator, _ any: ([String], @escaping (QueryTree) -> Bool) -> OracleCondition
    ) -> OracleCondition {
        let pieces = ["*", "?", "x", "B", "\u{f6}", "o", "\u{1F41F}", "\\", "*"]
        let pattern = (0..<random.below(4)).map { _ in pieces.randomElement(using: &random) ?? "" }.joined()
        func matches(_ pattern: Substring.UnicodeScalarView, _ text: Substring.UnicodeScalarView) -> Bool {
            guard let first = pattern.first else { return text.isEmpty }
            if first == "*" {
                return matches(pattern.dropFirst(), text) || !text.isEmpty && matches(pattern, text.dropFirst())
            }
            guard let scalar = text.first, first == "?" || first == scalar else { return false }
            return matches(pattern.dropFirst(), text.dropFirst())
        }
        return any(["LIKE", pattern]) {
            guard case .text(let text) = $0 else { return false }
            return matches(Substring(pattern).unicodeScalars, Substring(text).unicodeScalars)
        }
    }
}
