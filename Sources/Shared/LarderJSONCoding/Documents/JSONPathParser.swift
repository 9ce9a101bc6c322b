/// Parses the text of a ``JSONPath``.
///
/// A value type, used once. Its memory and its time are proportional to the length of the text.
struct JSONPathParser {
    private let text: UnsafeRawBufferPointer
    private var position = 0
    private var depth = 0

    /// The maximum number of nested parentheses and paths in filters.
    private static let depthMax = 32

    init(_ text: UnsafeRawBufferPointer) { self.text = text }

    private var byte: UInt8? { position < text.count ? text[position] : nil }

    private func failure(_ expected: String) -> JSONPath.Defect {
        JSONPath.Defect(offset: position, expected: expected)
    }

    private mutating func skip(_ word: StaticString) -> Bool {
        guard isNext(word) else { return false }
        position += word.utf8CodeUnitCount
        return true
    }

    private func isNext(_ word: StaticString) -> Bool {
        let count = word.utf8CodeUnitCount
        guard text.count - position >= count else { return false }
        for index in 0..<count where text[position + index] != word.utf8Start[index] { return false }
        return true
    }

    private mutating func skipSpace() { while byte == 0x20 { position += 1 } }

    // MARK: Paths

    mutating func path() throws(JSONPath.Defect) -> (steps: [JSONPath.Step], isLegacy: Bool) {
        let isLegacy = !(isNext("$") && (text.count == 1 || isNext("$.") || isNext("$[")))
        var found: [JSONPath.Step] = []
        if isLegacy {
            if text.isEmpty { throw failure("a path, for example $ for the whole document") }
            if text.count == 1, byte == UInt8(ascii: ".") { return ([], true) }
            if byte != UInt8(ascii: "."), byte != UInt8(ascii: "[") { found.append(try dotted(isRecursive: false)) }
        } else {
            position = 1
        }
        found += try steps()
        if position < text.count { throw failure("'.', '[' or the end of the path") }
        return (found, isLegacy)
    }

    /// Parses steps until a byte that begins none.
    private mutating func steps() throws(JSONPath.Defect) -> [JSONPath.Step] {
        var found: [JSONPath.Step] = []
        while true {
            if skip("..") {
                found.append(try isNext("[") ? bracketed(isRecursive: true) : dotted(isRecursive: true))
            } else if isNext("[") || isNext(".[") {
                _ = skip(".")
                found.append(try bracketed(isRecursive: false))
            } else if skip(".") {
                found.append(try dotted(isRecursive: false))
            } else {
                return found
            }
        }
    }

    /// Parses a name or `*`.
    private mutating func dotted(isRecursive: Bool) throws(JSONPath.Defect) -> JSONPath.Step {
        if skip("*") { return JSONPath.Step(selector: .all, isRecursive: isRecursive) }
        let start = position
        while let byte, Self.isInName(byte) { position += 1 }
        guard position > start else { throw failure("a name, '*' or '['") }
        let name = String(decoding: UnsafeRawBufferPointer(rebasing: text[start..<position]), as: UTF8.self)
        return JSONPath.Step(selector: .names([name]), isRecursive: isRecursive)
    }

    /// Whether a byte may be in a name without quotes. RedisJSON allows only some ASCII characters in such names.
    private static func isInName(_ byte: UInt8) -> Bool { byte > 0x20 && !".[](),'\"=!<>&|*".utf8.contains(byte) }

    private mutating func bracketed(isRecursive: Bool) throws(JSONPath.Defect) -> JSONPath.Step {
        position += 1
        skipSpace()
        let selector: JSONPath.Selector
        if skip("*") {
            selector = .all
        } else if skip("?") {
            selector = .filter(try filter())
        } else if isNext("'") || isNext("\"") {
            var names = [try string()]
            skipSpace()
            while skip(",") {
                skipSpace()
                names.append(try string())
                skipSpace()
            }
            selector = .names(names)
        } else {
            selector = try numbers()
        }
        skipSpace()
        guard skip("]") else { throw failure("']'") }
        return JSONPath.Step(selector: selector, isRecursive: isRecursive)
    }

    /// Parses indices, such as `0,-1`, or a range, such as `1:-1:2`.
    private mutating func numbers() throws(JSONPath.Defect) -> JSONPath.Selector {
        let first = isNext(":") ? nil : try integer("an index, a range, a name in quotes, '*' or '?'")
        skipSpace()
        guard skip(":") else {
            var indices = first.map { [$0] } ?? []
            while skip(",") {
                skipSpace()
                indices.append(try integer("an index"))
                skipSpace()
            }
            return .indices(indices)
        }
        skipSpace()
        let end = isNext(":") || isNext("]") ? nil : try integer("the end of the range, ':' or ']'")
        skipSpace()
        var step = 1
        if skip(":") {
            skipSpace()
            if !isNext("]") {
                let start = position
                step = try integer("a step of at least 1")
                if step < 1 {
                    position = start
                    throw failure("a step of at least 1")
                }
            }
        }
        return .range(from: first, to: end, step: step)
    }

    private mutating func integer(_ expected: String) throws(JSONPath.Defect) -> Int {
        let start = position
        _ = skip("-")
        while let byte, byte &- 0x30 < 10 { position += 1 }
        let digits = String(decoding: UnsafeRawBufferPointer(rebasing: text[start..<position]), as: UTF8.self)
        // An absolute value of 32 bits is enough for all arrays, and cannot overflow when counts are added.
        guard let number = Int32(digits) else {
            position = start
            throw failure(expected)
        }
        return Int(number)
    }

    /// Parses a string in single or double quotes. A backslash before a quote or a backslash is removed.
    private mutating func string() throws(JSONPath.Defect) -> String {
        guard let quote = byte, quote == UInt8(ascii: "'") || quote == UInt8(ascii: "\"") else {
            throw failure("a name in quotes")
        }
        position += 1
        var bytes: [UInt8] = []
        while let next = byte, next != quote {
            position += 1
            if next == UInt8(ascii: "\\"), let escaped = byte, escaped == quote || escaped == next {
                bytes.append(escaped)
                position += 1
            } else {
                bytes.append(next)
            }
        }
        guard byte == quote else { throw failure("the closing quote") }
        position += 1
        return String(decoding: bytes, as: UTF8.self)
    }

    // MARK: Filters

    /// Parses comparisons that are joined by `||` and `&&`; `&&` binds tighter.
    private mutating func filter() throws(JSONPath.Defect) -> JSONFilter {
        depth += 1
        defer { depth -= 1 }
        guard depth <= Self.depthMax else { throw failure("at most \(Self.depthMax) nested filters") }
        var alternatives: [JSONFilter] = []
        repeat {
            var parts: [JSONFilter] = []
            repeat {
                skipSpace()
                parts.append(try operand())
                skipSpace()
            } while skip("&&")
            alternatives.append(parts.count == 1 ? parts[0] : .all(parts))
        } while skip("||")
        return alternatives.count == 1 ? alternatives[0] : .any(alternatives)
    }

    private mutating func operand() throws(JSONPath.Defect) -> JSONFilter {
        if skip("(") {
            let inner = try filter()
            guard skip(")") else { throw failure("')', '&&', '||' or a comparison") }
            return inner
        }
        let left = try term()
        skipSpace()
        guard let comparison = try comparison() else { return .exists(left) }
        skipSpace()
        return .compares(left, comparison, try term())
    }

    private mutating func comparison() throws(JSONPath.Defect) -> JSONFilter.Comparison? {
        if isNext("=~") { throw failure("a comparison other than =~, because regular expressions are not supported") }
        if skip("==") { return .equal }
        if skip("!=") { return .notEqual }
        if skip("<=") { return .lessOrEqual }
        if skip(">=") { return .greaterOrEqual }
        if skip("<") { return .less }
        if skip(">") { return .greater }
        return nil
    }

    private mutating func term() throws(JSONPath.Defect) -> JSONFilter.Term {
        switch byte {
        case UInt8(ascii: "@"), UInt8(ascii: "$"):
            let fromRoot = byte == UInt8(ascii: "$")
            position += 1
            depth += 1
            defer { depth -= 1 }
            guard depth <= Self.depthMax else { throw failure("at most \(Self.depthMax) nested filters") }
            return .path(try steps(), fromRoot: fromRoot)
        case UInt8(ascii: "'"), UInt8(ascii: "\""): return .string(try string())
        default:
            if skip("true") { return .boolean(true) }
            if skip("false") { return .boolean(false) }
            if skip("null") { return .null }
            return try number()
        }
    }

    private mutating func number() throws(JSONPath.Defect) -> JSONFilter.Term {
        let start = position
        while let byte, byte &- 0x30 < 10 || "+-.eE".utf8.contains(byte) { position += 1 }
        let digits = String(decoding: UnsafeRawBufferPointer(rebasing: text[start..<position]), as: UTF8.self)
        if let integer = Int64(digits) { return .integer(integer) }
        guard let double = Double(digits), double.isFinite else {
            position = start
            throw failure("a path that begins with @ or $, a number, a text in quotes, true, false or null")
        }
        return .double(double)
    }
}
