import LarderJSONCoding
import LarderPlatform
import LarderVocabulary

/// Changes of single properties of a stored model, without reading and storing the whole model. The closures of `edit`
/// receive this value:
///
/// ```swift
/// let score = try await games.edit("g:1", of: GameScore.self) {
///     $0.increment(\.score)
///     $0.insert("flying", into: \.skills)
///     $0.remove("pwnage", from: \.skills)
/// }.score
/// ```
/// The changes are made in the stored JSON, all or none, in the order of the calls. Other fields keep their bytes, also
/// those that this version of the model does not know. They are made before a ``Schema`` upgrades the text or adds
/// defaults: change older entries by `update`, or upgrade them first.
///
/// A property is found by its name. If the model's `CodingKeys`, or the encoder's strategy, store it under another
/// name, pass the stored name: `$0.set(\.isbn, to: "1", at: "ISBN")`. Names of nested properties are joined by dots,
/// and may contain indices of arrays: `tags.0`. The call compares the JSON at that place with the property of the
/// decoded model, and throws `invalidArgument` if they differ.
///
/// A value type. Each call appends a change; `edit` throws its errors.
public struct ModelEdits<Model: Codable> {
    /// A place that a change uses, and the property that should be stored there.
    private struct Place {
        let path: EditPath
        let property: AnyKeyPath
        /// Nil if the property has no name that identifies it.
        let id: VerifiedPlaces.ID?
        /// Returns the property of a model as JSON.
        let encode: (Model) throws -> JSONText
        /// Whether the property is a `Float`: sums are stored with the digits of doubles.
        let isFloat: Bool

        func holds(_ stored: JSONText, _ property: JSONText) -> Bool {
            // A set is encoded in any order.
            if stored.isEqual(to: property) || stored.hasSameElements(as: property) { return true }
            guard isFloat, let value = stored.float else { return false }
            return value == property.float
        }
    }

    package private(set) var edits: [JSONEdit] = []
    private var places: [Place] = []
    private let codec: ModelCodec
    /// Whether the result of a change may not be a model, depending on the stored one.
    private var isRisky = false
    /// The first error of a call.
    private var failure: Impossible?

    /// Why edits are impossible. A message for `invalidArgument`, or for an error of decoding.
    package struct Impossible: Error {
        package let message: String
        package var isOfDecoding = false
        package var underlying: (any Error)?
    }

    package init(_ codec: ModelCodec) { self.codec = codec }

    // MARK: Values

    /// Sets a property. Nil removes its field, as ``removeValue(of:at:)`` does.
    public mutating func set<Value: Encodable>(
        _ property: KeyPath<Model, Value>, to value: Value, at place: String? = nil
    ) {
        change(property, place) { edits in
            let text = try edits.json(value)
            // In an array, there is no field.
            let isElement = place.flatMap { EditPath($0)?.steps.last }.flatMap { Int($0) } != nil
            return text.isNull && !isElement ? .delete : .set(text)
        }
    }

    /// Removes the field of an optional property, so that it is nil.
    public mutating func removeValue<Value: Encodable>(
        of property: KeyPath<Model, Value?>, at place: String? = nil
    ) {
        change(property, place) { _ in .delete }
    }

    /// Adds to a number. A missing number counts as 0, also if the schema has a default. If a sum of integers does not
    /// fit into `Int64`, or the sum is not a value of the property's type, nothing is changed. Numbers with a fraction
    /// are added as doubles, also a `Decimal`: add money with `update`.
    public mutating func increment<Value: Numeric & Encodable>(
        _ property: KeyPath<Model, Value>, by amount: Value = 1, at place: String? = nil
    ) {
        change(property, place) { .increment(try $0.json(amount)) }
    }

    /// Adds to an optional number, like the call above.
    public mutating func increment<Value: Numeric & Encodable>(
        _ property: KeyPath<Model, Value?>, by amount: Value = 1, at place: String? = nil
    ) {
        change(property, place) { .increment(try $0.json(amount)) }
    }

    /// Appends to a text. A missing text counts as an empty one, also if the schema has a default.
    public mutating func append(_ text: String, to property: KeyPath<Model, String>, at place: String? = nil) {
        change(property, place) { .append(try $0.json(text)) }
    }

    // MARK: Collections

    /// Appends elements to an array.
    public mutating func append<Element: Encodable>(
        _ elements: Element..., to property: KeyPath<Model, [Element]>, at place: String? = nil
    ) {
        change(property, place) { .push(try $0.json(elements)) }
    }

    /// Appends those elements to an array that it does not contain.
    public mutating func insert<Element: Encodable>(
        _ elements: Element..., into property: KeyPath<Model, [Element]>, at place: String? = nil
    ) {
        change(property, place) { .addUnique(try $0.json(elements)) }
    }

    /// Adds elements to a set.
    public mutating func insert<Element: Encodable>(
        _ elements: Element..., into property: KeyPath<Model, Set<Element>>, at place: String? = nil
    ) {
        change(property, place) { .addUnique(try $0.json(elements)) }
    }

    /// Removes all elements of an array that equal one of these.
    public mutating func remove<Element: Encodable>(
        _ elements: Element..., from property: KeyPath<Model, [Element]>, at place: String? = nil
    ) {
        change(property, place) { .remove(try $0.json(elements)) }
    }

    /// Removes elements from a set.
    public mutating func remove<Element: Encodable>(
        _ elements: Element..., from property: KeyPath<Model, Set<Element>>, at place: String? = nil
    ) {
        change(property, place) { .remove(try $0.json(elements)) }
    }

    // MARK: Preparation

    private mutating func change<Value: Encodable>(
        _ property: KeyPath<Model, Value>, _ place: String?, _ action: (ModelEdits) throws -> JSONEdit.Action
    ) {
        guard failure == nil else { return }
        do throws(Impossible) {
            let path = try Self.path(of: property, place)
            let names = place == nil ? path.text : PropertyPath.names(of: property)
            let codec = codec
            do { add(JSONEdit(path, try action(self)), of: Value.self) } catch {
                let reason = (error as? Impossible)?.message ?? CodingProblem.encoding(error, codec.codec)
                throw Impossible(message: "'\(printableKey(path.text.utf8))': \(reason)")
            }
            // On the way to a nested property, an object may be missing: the change then creates it with one field.
            let unwraps = PropertyPath.unwraps(property)
            if path.steps.count > 1 || unwraps { isRisky = true }
            if unwraps { return }
            if let last = places.last, last.path == path, last.property == property { return }
            places.append(
                Place(
                    path: path, property: property,
                    id: names.map { VerifiedPlaces.ID(Model.self, codec.identity, "\(path.text) \($0)") },
                    encode: { try Self.json($0[keyPath: property], codec) },
                    isFloat: Value.self is Float.Type || Value.self is Float?.Type))
        } catch {
            failure = error
        }
    }

    /// - Parameter type: the type of the property.
    private mutating func add(_ edit: JSONEdit, of type: Any.Type) {
        switch edit.action {
        case .increment:
            // The daemon refuses only sums that are no values of these types.
            let safe: [Any.Type] = [Int.self, Int?.self, Int64.self, Int64?.self, Double.self, Double?.self]
            if !safe.contains(where: { $0 == type }) { isRisky = true }
        case .delete: if !(type is any ExpressibleByNilLiteral.Type) { isRisky = true }
        default: break
        }
        if let last = edits.indices.last, edits[last].join(edit) { return }
        edits.append(edit)
    }

    /// Whether the schema adds or changes fields when it reads a model.
    private var hasDefaults: Bool { codec.rules?.ofReads(Model.self) != nil }

    private func json(_ value: some Encodable) throws -> JSONText { try Self.json(value, codec) }

    private func json(_ elements: [some Encodable]) throws -> [JSONText] {
        if elements.isEmpty { throw Impossible(message: "no elements were given") }
        return try elements.map { try json($0) }
    }

    /// Encodes a value as JSON, also a text or bytes, which the standard codec does not store as JSON.
    private static func json(_ value: some Encodable, _ codec: ModelCodec) throws -> JSONText {
        guard let text = try codec.json(of: value) else {
            throw Impossible(
                message: codec.codec == .json
                    ? "the encoder's text is not JSON"
                    : "the cache's codec is \(codec.codec), and only JSON can be edited")
        }
        return text
    }

    /// Returns the place of a property.
    private static func path(of property: AnyKeyPath, _ place: String?) throws(Impossible) -> EditPath {
        if let place {
            if let path = EditPath(place), !path.steps.isEmpty { return path }
            throw Impossible(
                message: "'\(printableKey(place.utf8))' is not a place: expected names, such as a.b\(Self.unnamed)")
        }
        guard let names = PropertyPath.names(of: property), let path = EditPath(names) else {
            throw Impossible(
                message: "\(property) is not a stored property; pass the place in the JSON, as in at: \"name\"")
        }
        return path
    }

    private static var unnamed: String { "; \(EditPath.unnamed): use update" }

    // MARK: Use

    /// Throws if one of the calls was impossible, or there was none.
    package func check() throws(Impossible) {
        if let failure { throw failure }
        if edits.isEmpty { throw Impossible(message: "the closure made no edits") }
    }

    /// Whether the result must be decoded, compared and checked before it is stored: the schema has checks, a place was
    /// never seen to change with its property, or the result may not be a model.
    package var mustBeTried: Bool { codec.hasChecks || isRisky || hasDefaults || !areVerified }

    private var areVerified: Bool { places.allSatisfy { $0.id.map(VerifiedPlaces.contain) ?? false } }

    /// Makes the changes in a stored text, and compares the places with the properties before and afterwards.
    /// - Returns: the model, and its text; nil if nothing is changed.
    package func result(
        of text: UnsafeRawBufferPointer, storedAs stored: Codec
    ) throws(Impossible) -> (Model, [UInt8]?) {
        let previous = try verified(before: text, storedAs: stored)
        let changed: [UInt8]?
        do throws(JSONEdit.Failure) { changed = try JSONEdit.apply(edits, to: text) } catch {
            if case .step(let number, let reason) = error {
                throw Impossible(
                    message: "edit \(number): " + reason.replacing("PUSH appends", with: "append(_:to:) appends"))
            }
            throw Impossible(message: "the value is not JSON", isOfDecoding: true)
        }
        let result = changed ?? Array(text)
        let model: Model
        do { model = try result.withUnsafeBytes { try codec.decode(Model.self, $0, storedAs: stored) } } catch {
            var (reason, error) = ("the result of the edits is no valid \(Model.self), and nothing was stored: ", error)
            do { _ = try codec.decode(Model.self, text, storedAs: stored) } catch let previous {
                (reason, error) = ("the stored value is no valid \(Model.self), and no edit was made: ", previous)
            }
            throw Impossible(
                message: reason + CodingProblem.decoding(error), isOfDecoding: true,
                underlying: CodingProblem.underlying(error))
        }
        try result.withUnsafeBufferPointer { (result) throws(Impossible) in
            try verify(model, in: UnsafeRawBufferPointer(result), after: previous)
        }
        return (model, changed)
    }

    /// Compares the places with the properties before the changes: fields that the edits would wrongly overwrite. The
    /// model is encoded again, because a stored text may lack fields that have a default.
    /// - Returns: the model; nil if all places are verified, or there is no model of this type.
    private func verified(before text: UnsafeRawBufferPointer, storedAs stored: Codec) throws(Impossible) -> Model? {
        guard !areVerified, let model = try? codec.decode(Model.self, text, storedAs: stored),
            let encoded = try? codec.encodeModel(model)
        else { return nil }
        try encoded.withBytes { (bytes) throws(Impossible) in try compare(model, in: bytes) }
        return model
    }

    /// Compares the JSON at each place with the property of the model that was decoded from it.
    /// - Parameter previous: the result of ``verified(before:storedAs:)``.
    package func verify(
        _ model: Model, in text: UnsafeRawBufferPointer, after previous: Model? = nil
    ) throws(Impossible) {
        try compare(model, in: text)
        guard let previous else { return }
        for place in places {
            // A property that did not change could equal another field by chance.
            guard let id = place.id, let before = try? place.encode(previous), let after = try? place.encode(model),
                !place.holds(before, after)
            else { continue }
            VerifiedPlaces.insert(id)
        }
    }

    private func compare(_ model: Model, in text: UnsafeRawBufferPointer) throws(Impossible) {
        for place in places {
            let stored = place.path.value(in: text).flatMap { bytes in
                bytes.withUnsafeBytes { try? JSONText(parsing: $0) }
            }
            let property: JSONText
            do { property = try place.encode(model) } catch {
                throw Impossible(message: CodingProblem.encoding(error, codec.codec))
            }
            if let stored, place.holds(stored, property) { continue }
            if stored == nil, property.isNull { continue }
            throw Impossible(
                message:
                    "the field '\(printableKey(place.path.text.utf8))' does not hold the property of \(Model.self); "
                    + "pass the place in the JSON, as in at: \"name\"\(Self.unnamed)"
                    + (hasDefaults
                        ? "; if the entry is older than the schema, upgrade it first, with update or upgradeAll" : ""))
        }
    }
}

/// The places in stored models that this process has seen to change with the properties of the models.
private enum VerifiedPlaces {
    struct ID: Hashable {
        private let model: ObjectIdentifier
        private let codec: ObjectIdentifier?
        private let text: String

        /// - Parameter text: the place, and the name of the property.
        init(_ model: Any.Type, _ codec: AnyObject?, _ text: String) {
            (self.model, self.codec, self.text) = (ObjectIdentifier(model), codec.map { ObjectIdentifier($0) }, text)
        }
    }

    private static let known = Locked<Set<ID>>([])
    /// Places can contain indices, so their number is not limited by the models.
    private static let countMax = 10_000

    static func contain(_ id: ID) -> Bool { known.withLock { $0.contains(id) } }

    static func insert(_ id: ID) {
        known.withLock { known in
            if known.count > countMax { known = [] }
            known.insert(id)
        }
    }
}

extension JSONText {
    fileprivate var float: Float? { Float(String(decoding: bytes, as: UTF8.self)) }
}
