import LarderJSONCoding
import LarderModelCoding
import LarderQueries

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A condition in the words of QUERY.
struct ConditionWords: Sendable {
    private enum Kind { case factor, all, any }

    private let kind: Kind
    let words: [[UInt8]]

    private init(_ kind: Kind, _ words: [[UInt8]]) { (self.kind, self.words) = (kind, words) }

    /// Each entry has a key.
    static let always = ConditionWords("@key", "EXISTS")
    static let never = ConditionWords("@key", "MISSING")

    /// - Parameter path: the path of a field, or a fact of the entry such as `@key`.
    init(_ path: String, _ operation: String, _ operands: [[UInt8]] = []) {
        self.init(.factor, [QueryWord.path(path), Array(operation.utf8)] + operands)
    }

    /// The value equals one of these. A property that is nil may have no field.
    init(_ path: String, isIn values: [JSONText]) {
        let others = values.filter { !$0.isNull }
        var tests = values.filter(\.isNull).prefix(1).map { ConditionWords(path, equals: $0) }
        if !others.isEmpty {
            tests.append(
                ConditionWords(path, "IN", QueryWord.list("\(others.count)") + others.flatMap(QueryWord.operand)))
        }
        self = .any(tests)
    }

    init(_ path: String, equals value: JSONText) {
        let test = ConditionWords(path, "=", QueryWord.operand(value))
        self = value.isNull ? .any([ConditionWords(path, "MISSING"), test]) : test
    }

    init(_ path: String, _ bounds: RangeBounds<JSONText>) {
        let (from, to) = (bounds.lower.map(QueryWord.operand), bounds.upper.map(QueryWord.operand))
        if let from, let to, bounds.includesUpper {
            self.init(path, "BETWEEN", from + to)
        } else {
            let below = to.map { ConditionWords(path, bounds.includesUpper ? "<=" : "<", $0) }
            self = .all([from.map { ConditionWords(path, ">=", $0) }, below].compactMap(\.self))
        }
    }

    static func all(_ conditions: [ConditionWords]) -> ConditionWords { join(conditions, .all, "AND", always) }
    static func any(_ conditions: [ConditionWords]) -> ConditionWords { join(conditions, .any, "OR", never) }

    static func not(_ condition: ConditionWords) -> ConditionWords {
        ConditionWords(.factor, QueryWord.list("NOT") + condition.asFactor)
    }

    private static func join(
        _ conditions: [ConditionWords], _ kind: Kind, _ word: String, _ empty: ConditionWords
    ) -> ConditionWords {
        if conditions.count < 2 { return conditions.first ?? empty }
        // Without parentheses where they are not needed, because their depth is limited.
        let parts = conditions.map { $0.kind == kind ? $0.words : $0.asFactor }
        return ConditionWords(kind, Array(parts.joined(separator: QueryWord.list(word))))
    }

    private var asFactor: [[UInt8]] { kind == .factor ? words : QueryWord.list("(") + words + QueryWord.list(")") }
}

/// Single words of queries and of definitions of indexes.
enum QueryWord {
    static func path(_ path: String) -> [UInt8] { Array(QueryPath.word(path).utf8) }
    static func operand(_ value: JSONText) -> [[UInt8]] { [Array("JSON".utf8), value.bytes] }
    static func list(_ texts: String...) -> [[UInt8]] { texts.map { Array($0.utf8) } }
}

/// Why a query is impossible, in words for the caller.
struct ImpossibleQuery: Error {
    let message: String
}

extension JSONText {
    /// Whether an array may equal one of its own elements.
    var isOfEmptyArrays: Bool { bytes.allSatisfy("[],".utf8.contains) }
}

extension ModelCodec {
    /// Throws for collections that are not stored as an array of their elements, such as `Data` and `IndexSet`.
    func requireArray(_ type: Any.Type) throws(ImpossibleQuery) {
        let empty: Any? =
            if let type = type as? any RangeReplaceableCollection.Type { type.init() } else {
                (type as? any SetAlgebra.Type).map { $0.init() }
            }
        let text = (empty as? any Encodable).flatMap { try? json(of: $0) }
        guard type is any RangeExpression.Type || text.map({ $0.bytes.first != UInt8(ascii: "[") }) ?? false else {
            return
        }
        throw ImpossibleQuery(message: "\(type) is not stored as an array of its elements; use filter { }")
    }

    func operand(_ value: some Encodable) throws(ImpossibleQuery) -> JSONText {
        if let decimal = value as? Decimal, !OrderedValue.isExact(decimal) {
            throw ImpossibleQuery(
                message: "\(decimal) has more than 15 digits, and would be compared as a double; use filter { }")
        }
        let text: JSONText?
        do { text = try json(of: value) } catch {
            throw ImpossibleQuery(message: CodingProblem.encoding(error, codec))
        }
        guard let text else { throw ImpossibleQuery(message: notJSON) }
        return text
    }

    /// The JSON of a value that a whole property equals. A condition also tests the elements of an array: an array of
    /// empty ones could equal an element.
    func whole(_ value: some Encodable) throws(ImpossibleQuery) -> JSONText {
        func holdsArrays<Elements: Collection>(_: Elements) -> Bool {
            Elements.Element.self is any Collection.Type
                && ![String.self, Data.self].contains { $0 == Elements.Element.self }
        }
        let text = try operand(value)
        guard text.isOfEmptyArrays, let array = value as? any Collection, holdsArrays(array)
        else { return text }
        throw ImpossibleQuery(message: "\(value) may also equal an element of the array; use a predicate")
    }

    func operands(_ values: some Sequence<some Encodable>) throws(ImpossibleQuery) -> [JSONText] {
        try values.map { (value) throws(ImpossibleQuery) in try operand(value) }
    }

    /// The longitude and latitude of a place.
    func place(_ value: some Encodable) throws(ImpossibleQuery) -> [[UInt8]] {
        let place = try operand(value).bytes.withUnsafeBytes { text -> QueryPlace? in
            guard let document = JSONDocument(text) else { return nil }
            return QueryPlace(document, JSONDocument.root)
        }
        guard let place else { throw ImpossibleQuery(message: "\(value) is not a place: \(QueryPlace.form)") }
        return QueryWord.list("\(place.longitude)", "\(place.latitude)")
    }

    var notJSON: String { "the codec is \(codec), and only models stored as JSON can be queried" }
}

extension QueryPlace {
    /// What a place is, in words for the caller.
    static let form = "a place is [longitude, latitude], or has lon and lat, within -180...180 and -90...90"

    /// Whether the JSON of a property is a place, an array of places, or null.
    static func isPlace(_ text: JSONText) -> Bool {
        text.bytes.withUnsafeBytes { bytes in
            guard let document = JSONDocument(bytes) else { return false }
            if text.isNull || QueryPlace(document, JSONDocument.root) != nil { return true }
            guard document.kind(JSONDocument.root) == .array else { return false }
            for element in document.children(JSONDocument.root) where QueryPlace(document, element) == nil {
                return false
            }
            return true
        }
    }
}
