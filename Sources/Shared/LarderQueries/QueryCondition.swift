import LarderJSONCoding
import LarderVocabulary

/// The condition of a query. It is evaluated on the bytes of a document by path.
package indirect enum QueryCondition: Hashable, Sendable {
    case test(QueryPath, QueryTest)
    case not(QueryCondition)
    case and([QueryCondition])
    case or([QueryCondition])

    /// Tells whether a document matches.
    package typealias Evaluator = (borrowing JSONDocument, QueryFacts) -> Bool

    /// A function that evaluates the condition. It copies neither the condition nor values, which would take longer than
    /// the comparisons.
    package var evaluator: Evaluator {
        switch self {
        case .test(let path, let test):
            switch path.root {
            case .document:
                let passes = test.evaluator
                return { document, _ in passes(document, path.find(in: document)) }
            case .key: return { _, facts in test.passes(.text(facts.key)) }
            case .stored, .expires: return { _, facts in path.fact(facts).withView { test.passes($0) } }
            // It only finds candidates: the library computes the values of the models of the rows.
            case .computed, .distance: return { _, _ in true }
            }
        case .not(let condition):
            let matches = condition.evaluator
            return { !matches($0, $1) }
        case .and(let conditions):
            let all = conditions.map(\.evaluator)
            return { document, facts in
                for matches in all where !matches(document, facts) { return false }
                return true
            }
        case .or(let conditions):
            let any = conditions.map(\.evaluator)
            return { document, facts in
                for matches in any where matches(document, facts) { return true }
                return false
            }
        }
    }

    var tests: [(path: QueryPath, test: QueryTest)] {
        switch self {
        case .test(let path, let test): [(path, test)]
        case .not(let condition): condition.tests
        case .and(let conditions), .or(let conditions): conditions.flatMap(\.tests)
        }
    }

    package var testCount: Int { tests.count }

    /// The number of values of all IN and ALL in the condition.
    package var operandCount: Int {
        tests.reduce(0) { count, part in
            switch part.test {
            case .oneOf(let operands), .all(let operands): count + operands.count
            default: count
            }
        }
    }
}

/// Reads the words of a query or of an index definition, one after the other.
struct QueryWords {
    private let words: [[UInt8]]
    private let allowsComputed: Bool
    private(set) var position = 0

    init(_ words: [[UInt8]], allowsComputed: Bool = false) {
        (self.words, self.allowsComputed) = (words, allowsComputed)
    }

    var isAtEnd: Bool { position == words.count }

    /// The next word in upper case, if it is ASCII; empty at the end.
    var keyword: String { isAtEnd ? "" : String(decoding: words[position], as: UTF8.self).uppercased() }

    /// Skips the next word if it is a keyword.
    mutating func take(_ word: String) -> Bool {
        guard !isAtEnd, words[position].count == word.utf8.count,
            zip(words[position], word.utf8).allSatisfy({ $0 == $1 || $0 >= 0x61 && $0 & ~0x20 == $1 })
        else { return false }
        position += 1
        return true
    }

    mutating func next(_ what: String) throws(QueryError) -> [UInt8] {
        guard !isAtEnd else { throw QueryError("\(what) expected, but the words end\(after)") }
        defer { position += 1 }
        return words[position]
    }

    /// Where the error is, for its text.
    private var after: String { position == 0 ? "" : " after '" + Self.shown(words[position - 1]) + "'" }

    /// The error that something else was expected than the next word.
    func unexpected(_ what: String, _ names: [String] = []) -> QueryError {
        guard !isAtEnd else { return QueryError("\(what) expected, but the words end\(after)") }
        let word = Self.shown(words[position])
        return QueryError(
            "\(what) expected, not '\(word)'\(after)" + Suggestion.text(for: word, among: names))
    }

    static func shown(_ word: [UInt8]) -> String {
        let text = String(decoding: word.prefix(64), as: UTF8.self)
        return word.count > 64 ? text + "…" : text
    }

    mutating func path() throws(QueryError) -> QueryPath {
        let word = try next("a path")
        guard let text = String(validating: word, as: UTF8.self) else {
            throw QueryError("invalid path '\(Self.shown(word))': a path is UTF-8 text")
        }
        if text.contains(","), !text.hasPrefix("$.") {
            throw QueryError(
                "'\(Self.shown(word))' contains a comma, but words are separated by spaces only; a field of that name "
                    + "is $.\(Self.shown(word))")
        }
        return try QueryPath(text, allowsComputed: allowsComputed)
    }

    /// A decimal number without a sign.
    mutating func count(_ what: String) throws(QueryError) -> Int {
        let word = try next(what.hasPrefix("the ") ? what : "a number after \(what)")
        guard let text = String(validating: word, as: UTF8.self), text.utf8.allSatisfy({ $0 &- 0x30 < 10 }),
            let count = Int(text)
        else { throw QueryError("\(what) must be a number from 0 on, not '\(Self.shown(word))'") }
        return count
    }

    mutating func double(_ what: String) throws(QueryError) -> Double {
        let word = try next(what)
        guard let text = String(validating: word, as: UTF8.self), let value = Double(text), value.isFinite else {
            throw QueryError("\(what) must be a number, not '\(Self.shown(word))'")
        }
        return value
    }
}
