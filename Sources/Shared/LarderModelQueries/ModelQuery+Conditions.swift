import LarderJSONCoding
import LarderModelCoding

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

// Conditions on properties. All conditions of a query must hold.

extension ModelQuery {
    private func condition(
        _ property: AnyKeyPath, _ place: String? = nil,
        _ make: (String, ModelCodec) throws(ImpossibleQuery) -> ConditionWords
    ) -> Self {
        adding { (query) throws(ImpossibleQuery) in
            let path = try query.path(property, place)
            do throws(ImpossibleQuery) { query.add(try make(path, runner.codec)) } catch {
                throw ImpossibleQuery(message: "'\(printableKey(path.utf8))': \(error.message)")
            }
        }
    }

    /// The property equals a value; nil also if the field is missing. A set cannot be compared, because its JSON has no
    /// order: see ``where(_:containsAll:at:)``.
    public func `where`<Value: Encodable>(
        _ property: KeyPath<Model, Value>, _ value: Value, at place: String? = nil
    ) -> Self {
        condition(property, place) { (path, codec) throws(ImpossibleQuery) in
            guard !(value is any SetAlgebra) || value is any RawRepresentable else {
                try codec.requireArray(Value.self)
                throw ImpossibleQuery(message: "\(Value.self) has no order in JSON; use where(_:containsAll:)")
            }
            return ConditionWords(path, equals: try codec.whole(value))
        }
    }

    /// The field of this name in the JSON, for properties stored under another name, equals a value.
    public func `where`(_ name: String, _ value: some Encodable) -> Self {
        condition(\Model.self, name) { (path, codec) throws(ImpossibleQuery) in
            ConditionWords(path, equals: try codec.operand(value))
        }
    }

    /// The property equals one of these values.
    public func `where`<Value: Encodable>(
        _ property: KeyPath<Model, Value>, in values: some Sequence<Value>, at place: String? = nil
    ) -> Self {
        condition(property, place) { (path, codec) throws(ImpossibleQuery) in
            ConditionWords(path, isIn: try values.map { (value) throws(ImpossibleQuery) in try codec.whole(value) })
        }
    }

    /// The property is in a range, such as `1990..<2000` or `"m"...`. Ranges are those of the JSON: for numbers, text
    /// (by its bytes) and dates that are stored as numbers. Other types throw; use ``filter(_:)``.
    public func `where`<Value: Encodable & Comparable, Values: RangeExpression>(
        _ property: KeyPath<Model, Value>, _ range: Values, at place: String? = nil
    ) -> Self where Values.Bound == Value {
        condition(property, place) { (path, codec) throws(ImpossibleQuery) in
            try ConditionWords(path, range, codec)
        }
    }

    /// Like the call above. Nil is in no range.
    public func `where`<Value: Encodable & Comparable, Values: RangeExpression>(
        _ property: KeyPath<Model, Value?>, _ range: Values, at place: String? = nil
    ) -> Self where Values.Bound == Value {
        condition(property, place) { (path, codec) throws(ImpossibleQuery) in
            try ConditionWords(path, range, codec)
        }
    }

    /// The entry was stored, or expires, within a range of dates: `where(.stored, ..<weekAgo)`.
    public func `where`<Dates: RangeExpression>(_ fact: EntryFact, _ range: Dates) -> Self where Dates.Bound == Date {
        adding { (query) throws(ImpossibleQuery) in
            guard fact != .key, let range = range as? any KnownRange else {
                throw ImpossibleQuery(message: "use where(keyPrefix:) for keys, and ranges with bounds for times")
            }
            // Entries have whole milliseconds: the first one of a range is not before its bound.
            let bounds = range.bounds.mapped { bound in
                (bound as? Date).flatMap { JSONText("\(($0.timeIntervalSince1970 * 1000).rounded(.up))") }
            }
            query.add(ConditionWords(fact.rawValue, bounds))
        }
    }

    /// The array or set contains an element.
    public func `where`<Elements: Collection>(
        _ property: KeyPath<Model, Elements>, contains element: Elements.Element, at place: String? = nil
    ) -> Self where Elements.Element: Encodable {
        condition(property, place) { (path, codec) throws(ImpossibleQuery) in
            try codec.requireArray(Elements.self)
            let text = try codec.operand(element)
            // An equality also tests the whole array, which may equal an empty element.
            if text.isOfEmptyArrays {
                return ConditionWords(path, "ALL", QueryWord.list("1") + QueryWord.operand(text))
            }
            return ConditionWords(path, "=", QueryWord.operand(text))
        }
    }

    /// The array or set contains all of these elements.
    public func `where`<Elements: Collection>(
        _ property: KeyPath<Model, Elements>, containsAll elements: some Sequence<Elements.Element>,
        at place: String? = nil
    ) -> Self where Elements.Element: Encodable {
        condition(property, place) { (path, codec) throws(ImpossibleQuery) in
            try codec.requireArray(Elements.self)
            let operands = try codec.operands(elements)
            if operands.isEmpty { return .always }
            return ConditionWords(
                path, "ALL", QueryWord.list("\(operands.count)") + operands.flatMap(QueryWord.operand))
        }
    }

    /// The text begins with a prefix, by its bytes.
    public func `where`(_ property: KeyPath<Model, String>, prefix: String, at place: String? = nil) -> Self {
        condition(property, place) { path, _ in ConditionWords(path, "PREFIX", [Array(prefix.utf8)]) }
    }

    /// The text matches a pattern: `*` is any text, `?` one Unicode scalar. Case-sensitive.
    public func `where`(_ property: KeyPath<Model, String>, like pattern: String, at place: String? = nil) -> Self {
        condition(property, place) { path, _ in ConditionWords(path, "LIKE", [Array(pattern.utf8)]) }
    }

    /// The place is at most this far away, in meters. Without ``sorted(by:_:at:)``, the nearest models come first.
    ///
    /// A place is a value whose JSON is `[lon, lat]`, or an object with `lon` (`lng`, `longitude`) and `lat`
    /// (`latitude`), in degrees. A property that is an array of places has the distance of its nearest one. Results do
    /// not contain the distance.
    /// - Parameter center: for example a value of the property's type.
    public func `where`<Value: Encodable>(
        _ property: KeyPath<Model, Value>, near center: some Encodable, within meters: Double, at place: String? = nil
    ) -> Self {
        condition(property, place) { (path, codec) throws(ImpossibleQuery) in
            guard meters.isFinite, meters >= 0 else { throw ImpossibleQuery(message: "\(meters) is not a distance") }
            return ConditionWords(path, "NEAR", try codec.place(center) + QueryWord.list("\(meters)", "m"))
        }
    }

    /// The place is in a box: from the meridian of the first corner eastwards to that of the second one, also across the
    /// 180th meridian, and between their parallels.
    public func `where`<Value: Encodable, Corner: Encodable>(
        _ property: KeyPath<Model, Value>, within box: (Corner, Corner), at place: String? = nil
    ) -> Self {
        condition(property, place) { (path, codec) throws(ImpossibleQuery) in
            ConditionWords(path, "WITHIN", try codec.place(box.0) + codec.place(box.1))
        }
    }

    /// The entry's key begins with a prefix. Costs nothing without an index: only these entries are read.
    public func `where`(keyPrefix prefix: some CacheKey) -> Self {
        adding { query in
            query.keyPrefix = prefix.keyBytes
            query.add(ConditionWords(EntryFact.key.rawValue, "PREFIX", [prefix.keyBytes]))
        }
    }

    /// A predicate holds. Comparisons, `contains`, `starts(with:)`, `&&`, `||` and `!` on stored properties become
    /// conditions, which can use indexes. Other parts are evaluated as in ``filter(_:)``; `explain()` names them.
    public func `where`(_ predicate: Predicate<Model>) -> Self {
        adding { query in
            var translation = PredicateTranslation(runner.codec, predicate.variable.key)
            let found = translation.translate(predicate.expression)
            if let found { query.add(found.condition) }
            for check in translation.checks { query.add(check) }
            if found?.isExact ?? false { return }
            let parts = translation.untranslated.joined(separator: ", ")
            query.add(Filter(note: "the predicate, because of \(parts)") { try predicate.evaluate($0) })
        }
    }
}

/// The ranges of the standard library.
protocol KnownRange {
    var bounds: RangeBounds<Any> { get }
}

/// The bounds of a range; nil for none. All ranges contain their lower bound.
struct RangeBounds<Bound> {
    var lower: Bound?
    var upper: Bound?
    var includesUpper = false

    func mapped<Other, Failure: Error>(
        _ transform: (Bound) throws(Failure) -> Other?
    ) throws(Failure) -> RangeBounds<Other> {
        var bounds = RangeBounds<Other>(includesUpper: includesUpper)
        if let lower { bounds.lower = try transform(lower) }
        if let upper { bounds.upper = try transform(upper) }
        return bounds
    }
}

extension Range: KnownRange { var bounds: RangeBounds<Any> { RangeBounds(lower: lowerBound, upper: upperBound) } }
extension ClosedRange: KnownRange {
    var bounds: RangeBounds<Any> { RangeBounds(lower: lowerBound, upper: upperBound, includesUpper: true) }
}
extension PartialRangeFrom: KnownRange { var bounds: RangeBounds<Any> { RangeBounds(lower: lowerBound) } }
extension PartialRangeUpTo: KnownRange { var bounds: RangeBounds<Any> { RangeBounds(upper: upperBound) } }
extension PartialRangeThrough: KnownRange {
    var bounds: RangeBounds<Any> { RangeBounds(upper: upperBound, includesUpper: true) }
}

extension RangeBounds<JSONText> {
    /// - Parameter range: of values whose order is that of their JSON.
    init(_ range: Any, _ codec: ModelCodec) throws(ImpossibleQuery) {
        guard let range = range as? any KnownRange else {
            throw ImpossibleQuery(message: "\(type(of: range)) is not a range with bounds")
        }
        self = try range.bounds.mapped { (bound) throws(ImpossibleQuery) in try OrderedValue.json(bound, codec) }
    }
}

extension ConditionWords {
    /// - Parameter range: of values whose order is that of their JSON.
    init(_ path: String, _ range: Any, _ codec: ModelCodec) throws(ImpossibleQuery) {
        self.init(path, try RangeBounds(range, codec))
    }
}

/// Values whose equality and order are those of their JSON.
enum OrderedValue {
    /// Throws for other values.
    static func json(_ value: Any, _ codec: ModelCodec) throws(ImpossibleQuery) -> JSONText {
        if isKnown(value), let encodable = value as? any Encodable {
            let text = try codec.operand(encodable)
            // A date that is formatted as text may have another order.
            if !(value is Date) || text.bytes.first != UInt8(ascii: "\"") { return text }
        }
        throw ImpossibleQuery(
            message: "the order of \(type(of: value)) may not be that of its JSON; use filter { } or a predicate")
    }

    /// Whether a decimal is compared by its value. Decimals with more digits are compared as doubles.
    static func isExact(_ decimal: Decimal) -> Bool { decimal.description.count { $0.isNumber } <= 15 }

    private static func isKnown(_ value: Any) -> Bool {
        switch value {
        case is any BinaryInteger, is any BinaryFloatingPoint, is String, is Date: true
        case let decimal as Decimal: isExact(decimal)
        default: false
        }
    }
}
