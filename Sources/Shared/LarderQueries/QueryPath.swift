import LarderJSONCoding
import LarderPlatform
import LarderVocabulary

/// The key and the times of an entry, which queries can refer to. Borrowed: valid during one call.
package struct QueryFacts {
    package let key: UnsafeRawBufferPointer
    /// When the entry was stored, in milliseconds since 1970.
    package let stored: Int64
    /// When the entry expires, in milliseconds since 1970; nil if it does not.
    package let expires: Int64?

    package init(key: UnsafeRawBufferPointer, stored: Int64, expires: Int64?) {
        (self.key, self.stored, self.expires) = (key, stored, expires)
    }
}

/// A place in a document, as for EDIT: `name`, `a.b`, `a.0`, or `$` for the whole document. `$.name` is the same as
/// `name`, for names that are words of a query. Or a fact of the entry: `@key`, `@stored`, `@expires`.
package struct QueryPath: Hashable, Sendable {
    package enum Root: UInt8, Sendable { case document, key, stored, expires, computed, distance }

    package let root: Root
    /// The place in the document; empty for other roots.
    let place: EditPath
    package let text: String

    private static let facts: [String: Root] = ["@key": .key, "@stored": .stored, "@expires": .expires]
    /// Longer paths are refused, so that a document cannot be searched at length.
    private static let stepsMax = 64

    /// The key of the entry.
    package static let key = QueryPath(of: .key, "@key")

    /// The distance of NEAR, which only SELECT knows.
    static let distance = QueryPath(of: .distance, "@distance")

    private static let computedPrefix = "@computed "

    /// The values of a computed index. Only the library has such paths.
    /// - Parameter model: the types of the model and of the values.
    package static func computed(_ name: String, version: Int, of model: String) -> QueryPath {
        QueryPath(of: .computed, "\(computedPrefix)\(name) version \(version) of \(model)")
    }

    private init(of fact: Root, _ text: String) { (root, place, self.text) = (fact, EditPath(steps: []), text) }

    /// - Parameter allowsComputed: whether the path may be that of a computed index.
    package init(_ written: String, allowsComputed: Bool = false) throws(QueryError) {
        let text = written.hasPrefix("$.") ? String(written.dropFirst(2)) : written
        self.text = text
        if allowsComputed, text.hasPrefix(Self.computedPrefix) {
            (root, place) = (.computed, EditPath(steps: []))
        } else if text.hasPrefix("@") {
            guard let root = Self.facts[text] else {
                throw QueryError(
                    "unknown field '\(text)' of an entry: paths that begin with @ are @key, @stored and @expires"
                        + Suggestion.text(for: text, among: Self.facts.keys.sorted()))
            }
            (self.root, place) = (root, EditPath(steps: []))
        } else {
            guard let path = EditPath(text), path.steps.count <= Self.stepsMax else {
                throw QueryError("invalid path '\(text)': a path is name, a.b or a.0, or $ for the whole value")
            }
            (root, place) = (.document, path)
        }
    }

    /// The value of the path in a document; nil if there is none.
    func find(in document: borrowing JSONDocument) -> Int? {
        if case .value(let node) = place.find(in: document) { node } else { nil }
    }

    /// The value of a path that refers to the entry itself.
    func fact(_ facts: QueryFacts) -> QueryValue {
        switch root {
        case .document, .computed, .distance: .missing
        case .key: .text([UInt8](facts.key))
        case .stored: .number(.integer(Int128(facts.stored)))
        case .expires: facts.expires.map { .number(.integer(Int128($0))) } ?? .missing
        }
    }

    /// Passes the ``QueryValue/equalityHash`` of the values to `body` with which an equality is compared: the elements
    /// of an array, or the value.
    package func forEachHash(_ document: borrowing JSONDocument, _ facts: QueryFacts, _ body: (Int) -> Void) {
        guard root == .document else { return body(fact(facts).equalityHash) }
        guard let node = find(in: document) else { return }
        document.forEachValue(of: node) { body(document.withView($0, \.equalityHash)) }
    }

    // MARK: Sorting and selecting

    /// Passes the value that an entry is sorted by to `body`, without a copy: of an array the smallest element, or the
    /// largest if `descending`.
    func withSortValue<Result>(
        _ document: borrowing JSONDocument, _ facts: QueryFacts, descending: Bool, _ body: (ValueView) -> Result
    ) -> Result {
        guard root == .document else { return fact(facts).withView(body) }
        guard let node = find(in: document) else { return body(.missing) }
        guard document.kind(node) == .array else { return document.withView(node, body) }
        var best: Int?
        document.forEachElement(node) { element in
            guard let other = best else {
                best = element
                return true
            }
            let order = document.withView(element) { view in document.withView(other) { view.order($0) } }
            if descending ? order > 0 : order < 0 { best = element }
            return true
        }
        guard let best else { return body(.container) }
        return document.withView(best, body)
    }

    /// The JSON text of the path's value, with the bytes of the document; nil if it is missing.
    package func json(_ document: borrowing JSONDocument, _ facts: QueryFacts) -> [UInt8]? {
        guard root == .document else { return fact(facts).json }
        return find(in: document).map { [UInt8](document.bytes($0)) }
    }
}

/// The error for a query that cannot be run, in words for its sender.
package struct QueryError: Error, Equatable {
    package let text: String
    package init(_ text: String) { self.text = text }
}
