import LarderJSONCoding
import LarderPlatform

/// The rules of the models of one type in a database: checks before a model is stored, defaults of fields that stored
/// texts lack, and the upgrade of entries that earlier versions of the program have stored.
///
/// ```swift
/// let schema = Schema(Book.self, version: 2, older: .upgrade { $0["year", default: 1900] })
///     .check(\.price, 0...10_000)
///     .check(\.isbn) { $0.count == 13 }
///     .default(\.language, "en")
/// let books = try Cache(named: "books", policy: .low, schema: schema)
/// ```
/// - A *check* fails before anything is stored: the call throws `encoding` (`encode` in clients), and names the
///   property. Checks apply to all calls of this cache that store a model, and to batches of `makeBatch()`, but not to
///   models within arrays, dictionaries and other models. What others store is not checked.
/// - A *default* is read where the stored JSON has no such field. Conditions of queries, and `edit`, see the JSON as it
///   is stored.
/// - An entry is *older* if it cannot be decoded without defaults, and there is an upgrade; `version` decides nothing.
///   So reading a current entry costs nothing, and its text has no member for a version, which other programs would
///   see. Give a property a new name if its meaning changes, because older texts must not be decodable. A new
///   *optional* property cannot be noticed: make it non-optional, without a default, or set it in an upgrade that
///   another property needs.
/// - The upgrade changes what is read; the entry keeps its text until it is stored again, for example by `upgradeAll`.
///   If the upgrade fails, or its result cannot be decoded, the stored text is read with the defaults.
///
/// Defaults and upgrades apply where this type itself is read, not an optional or an array of it. Entries must be JSON.
/// A schema that contradicts itself throws `invalidArgument` where the cache is opened; with a `RemoteCache`, each call
/// that stores or reads a model throws `encode` or `decode`. Thread-safe: an immutable value.
public struct Schema<Model: Codable & SendableMetatype>: ModelSchema {
    public private(set) var rules: SchemaRules
    /// Each returns the text of an error for the value of a property; nil if it passes.
    private var checks: [(property: any PartialKeyPath<Model> & Sendable, problem: @Sendable (Any) -> String?)] = []
    private var defaultValues: [(property: any PartialKeyPath<Model> & Sendable, value: any Sendable)] = []

    /// Declares the rules of models of a type.
    /// - Parameters:
    ///   - version: the number of this version of the type, at least 1, for error texts.
    ///   - older: what to do with older entries. By default they cannot be read.
    public init(_ type: Model.Type = Model.self, version: Int = 1, older: OlderEntries = .unreadable) {
        rules = SchemaRules(model: type, version: version, upgrade: older.upgrade)
        if version < 1 { rules.problem = "the version \(version) of \(type) is less than 1" }
    }

    /// Requires a property to be in a range, such as `0...10_000`.
    public func check<Value: Comparable & SendableMetatype, Values: RangeExpression & Sendable & SendableMetatype>(
        _ property: any KeyPath<Model, Value> & Sendable, _ range: Values
    ) -> Self where Values.Bound == Value {
        adding(property, isEmpty: (range as? Range<Value>)?.isEmpty, "is not within \(Self.text(of: range))") {
            range.contains($0)
        }
    }

    /// Requires an optional property to be nil or in a range.
    public func check<Value: Comparable & SendableMetatype, Values: RangeExpression & Sendable & SendableMetatype>(
        _ property: any KeyPath<Model, Value?> & Sendable, _ range: Values
    ) -> Self where Values.Bound == Value {
        adding(property, isEmpty: (range as? Range<Value>)?.isEmpty, "is not within \(Self.text(of: range))") {
            $0.map(range.contains) ?? true
        }
    }

    /// A range as it is written in Swift.
    private static func text<Values: RangeExpression>(of range: Values) -> String {
        switch range {
        case let range as PartialRangeFrom<Values.Bound>: "\(range.lowerBound)..."
        case let range as PartialRangeUpTo<Values.Bound>: "..<\(range.upperBound)"
        case let range as PartialRangeThrough<Values.Bound>: "...\(range.upperBound)"
        default: "\(range)"
        }
    }

    /// Requires a condition to be true for a property. Called on any thread.
    public func check<Value: SendableMetatype>(
        _ property: any KeyPath<Model, Value> & Sendable, _ isValid: @escaping @Sendable (Value) -> Bool
    ) -> Self { adding(property, "fails its check", isValid) }

    private func adding<Value: SendableMetatype>(
        _ property: any KeyPath<Model, Value> & Sendable, isEmpty: Bool? = nil, _ problem: String,
        _ isValid: @escaping @Sendable (Value) -> Bool
    ) -> Self {
        let text = "the property '\(PropertyPath.names(of: property) ?? "\(property)")' \(problem)"
        var schema = self
        if isEmpty ?? false { schema.rules.problem = text + ", which is an empty range" }
        schema.checks.append((property, { ($0 as? Value).map(isValid) ?? true ? nil : text }))
        schema.compareDefaults()
        schema.rules.check = { [checks = schema.checks] model in
            guard let model = model as? Model else { return nil }
            return checks.lazy.compactMap { $0.problem(model[keyPath: $0.property]) }.first
        }
        return schema
    }

    /// Defaults must pass the checks of their properties.
    private mutating func compareDefaults() {
        for (property, value) in defaultValues {
            for check in checks where check.property as AnyKeyPath == property as AnyKeyPath {
                if let problem = check.problem(value) { rules.problem = "the default of " + problem }
            }
        }
    }

    /// Declares what a property is if the stored text has no such field: also an optional one, which is then never nil.
    /// Increments of `edit` begin at 0 nevertheless. Each property can have one default.
    /// - Parameter place: the name of the property in the JSON, if it is another one.
    public func `default`<Value: Encodable & Sendable>(
        _ property: any KeyPath<Model, Value> & Sendable, _ value: Value, at place: String? = nil
    ) -> Self {
        var schema = self
        guard let names = place ?? PropertyPath.names(of: property), let path = EditPath(names), !path.steps.isEmpty
        else {
            schema.rules.problem = "\(property) is not a stored property of the schema; pass its name in the JSON"
            return schema
        }
        if rules.defaults.contains(where: { $0.path == path }) {
            schema.rules.problem = "the property '\(printableKey(path.text.utf8))' has two defaults"
        }
        schema.rules.defaults.append(SchemaRules.Default(path: path) { try $0.json(of: value) })
        schema.defaultValues.append((property, value))
        schema.compareDefaults()
        if Value.self is any ExpressibleByNilLiteral.Type { schema.rules.completes = true }
        return schema
    }
}

/// A ``Schema`` of any type.
public protocol ModelSchema: Sendable {
    /// For Larder's own use.
    var rules: SchemaRules { get }
}

/// What a ``Schema`` does with older entries.
public struct OlderEntries: Sendable {
    let upgrade: (@Sendable (inout OlderFields) throws -> Void)?

    /// They cannot be decoded.
    public static let unreadable = OlderEntries(upgrade: nil)

    /// They are changed by a closure when they are read. It is called on any thread, for the entries of any earlier
    /// version, also those that only lack fields with defaults, and perhaps for entries that are no models at all. If
    /// it throws, the entry is read with the defaults, or cannot be decoded.
    public static func upgrade(_ body: @escaping @Sendable (inout OlderFields) throws -> Void) -> OlderEntries {
        OlderEntries(upgrade: body)
    }
}

/// The stored fields of an older entry, for the closure of ``OlderEntries/upgrade(_:)``. Names are those of the JSON;
/// names of nested fields are joined by dots. A change that is impossible makes the entry undecodable.
public struct OlderFields {
    private(set) var text: [UInt8]
    private let codec: ModelCodec
    private(set) var failure: (any Error)?

    init(_ text: [UInt8], _ codec: ModelCodec) { (self.text, self.codec) = (text, codec) }

    /// Adds a field, unless there is one of this name.
    public subscript(name: String, default value: some Encodable) -> Void {
        mutating get { if json(name) == nil { set(name, to: value) } }
    }

    /// Returns a field; nil if it is missing, or has another type.
    public func value<Value: Decodable>(_ name: String, as type: Value.Type = Value.self) -> Value? {
        json(name).flatMap { text in text.withUnsafeBytes { try? codec.decode(type, $0, storedAs: .json) } }
    }

    /// Sets a field.
    public mutating func set(_ name: String, to value: some Encodable) {
        edit(name) { codec in try codec.json(of: value).map { .set($0) } }
    }

    /// Removes a field, if there is one.
    public mutating func remove(_ name: String) {
        if json(name) != nil { edit(name) { _ in .delete } }
    }

    /// Gives a field another name, if there is one of the old name.
    public mutating func rename(_ name: String, to newName: String) {
        guard let value = json(name) else { return }
        edit(newName) { _ in .set(try value.withUnsafeBytes { try JSONText(parsing: $0) }) }
        remove(name)
    }

    private func json(_ name: String) -> [UInt8]? {
        EditPath(name).flatMap { path in text.withUnsafeBytes { path.value(in: $0) } }
    }

    private mutating func edit(_ name: String, _ action: (ModelCodec) throws -> JSONEdit.Action?) {
        guard failure == nil else { return }
        do {
            guard let path = EditPath(name), let action = try action(codec) else {
                throw SchemaProblem(text: "'\(printableKey(name.utf8))' cannot be changed")
            }
            text = try text.withUnsafeBytes { try JSONEdit.apply([JSONEdit(path, action)], to: $0) } ?? text
        } catch {
            failure = error
        }
    }
}

/// Why a model cannot be stored, or an entry cannot be upgraded, in words for the caller.
struct SchemaProblem: Error {
    let text: String
}

/// The rules of a ``Schema``, without its type.
public struct SchemaRules: Sendable {
    struct Default: Sendable {
        let path: EditPath
        let json: @Sendable (ModelCodec) throws -> JSONText?
    }

    let model: ObjectIdentifier
    fileprivate let name: String
    private let upgrade: (@Sendable (inout OlderFields) throws -> Void)?
    /// Returns the text of an error; nil if the model passes, or is of another type.
    var check: (@Sendable (any Encodable) -> String?)?
    var defaults: [Default] = []
    /// Whether a default is that of an optional property: such a text could be decoded without it.
    var completes = false
    /// Why the schema is impossible.
    var problem: String?

    init(model: Any.Type, version: Int, upgrade: (@Sendable (inout OlderFields) throws -> Void)?) {
        self.model = ObjectIdentifier(model)
        name = "version \(version) of \(model)"
        self.upgrade = upgrade
    }

    /// Whether the rules change what is read.
    var changesReads: Bool { upgrade != nil || !defaults.isEmpty || problem != nil }

    func verify(_ model: some Encodable) throws {
        if let text = problem ?? check?(model) { throw SchemaProblem(text: text) }
    }

    /// The default of a field.
    func json(of place: String, _ codec: ModelCodec) throws -> JSONText? {
        try defaults.first { $0.path.text == place }?.json(codec)
    }

    /// Decodes a stored text.
    /// - Parameter completes: whether defaults are also added to a text that can be decoded without them.
    /// - Returns: the model, and the text that was decoded instead of the stored one; nil if that is current.
    func read<Value>(
        _ text: UnsafeRawBufferPointer, _ codec: ModelCodec, completes: Bool,
        _ decode: (UnsafeRawBufferPointer) throws -> Value
    ) throws -> (value: Value, changed: [UInt8]?) {
        if let problem { throw SchemaProblem(text: problem) }
        var failure: any Error
        do {
            let value = try decode(text)
            guard completes, let filled = try completed(text, codec) else { return (value, nil) }
            return (try filled.withUnsafeBytes(decode), filled)
        } catch { failure = error }
        // Before the defaults: they would hide that a field has another name in an older text.
        if let upgrade {
            do { return try upgraded(text, codec, upgrade, decode) } catch { failure = error }
        }
        guard let filled = try completed(text, codec) else { throw failure }
        do { return (try filled.withUnsafeBytes(decode), filled) } catch { throw upgrade == nil ? error : failure }
    }

    private func upgraded<Value>(
        _ text: UnsafeRawBufferPointer, _ codec: ModelCodec, _ upgrade: (inout OlderFields) throws -> Void,
        _ decode: (UnsafeRawBufferPointer) throws -> Value
    ) throws -> (value: Value, changed: [UInt8]?) {
        var fields = OlderFields(Array(text), codec)
        do { try upgrade(&fields) } catch { throw impossible("the upgrade threw \(type(of: error))") }
        if let failure = fields.failure {
            switch failure {
            case JSONEdit.Failure.step(_, let reason): throw impossible(reason)
            case is JSONEdit.Failure: throw impossible("it is not JSON")
            default: throw impossible(CodingProblem.encoding(failure, codec.codec))
            }
        }
        let changed = try fields.text.withUnsafeBytes { try completed($0, codec) } ?? fields.text
        do { return (try changed.withUnsafeBytes(decode), changed) } catch {
            throw impossible(CodingProblem.decoding(error))
        }
    }

    private func impossible(_ reason: String) -> SchemaProblem {
        SchemaProblem(text: "it cannot be upgraded to \(name): \(reason)")
    }

    /// Adds the fields that a text lacks; nil if it has all.
    private func completed(_ text: UnsafeRawBufferPointer, _ codec: ModelCodec) throws -> [UInt8]? {
        var result: [UInt8]?
        for field in defaults {
            func edited(_ text: UnsafeRawBufferPointer) throws -> [UInt8]? {
                guard field.path.value(in: text) == nil, let json = try field.json(codec) else { return nil }
                // The object that has the field may be missing.
                return try? JSONEdit.apply([JSONEdit(field.path, .set(json))], to: text)
            }
            result = try result.map { try $0.withUnsafeBytes(edited) ?? $0 } ?? edited(text)
        }
        return result
    }
}

/// The rules of the models of a cache, by their types. A reference type: its identity is that of how models are decoded.
package final class ModelRules: Sendable {
    private let rules: [ObjectIdentifier: SchemaRules]
    /// Whether some rules change what is read.
    let changesReads: Bool

    init(_ schemas: [any ModelSchema]) {
        rules = Dictionary(schemas.map { ($0.rules.model, $0.rules) }) { $1 }
        changesReads = rules.values.contains(where: \.changesReads)
    }

    func verify(_ model: some Encodable) throws { for rules in rules.values { try rules.verify(model) } }

    var hasChecks: Bool { rules.values.contains { $0.check != nil } }

    func contains(_ type: Any.Type) -> Bool { rules[ObjectIdentifier(type)] != nil }

    /// Why declared schemas are impossible; nil if they are possible.
    package static func problem(of schemas: [any ModelSchema], _ codec: ModelCodec) -> String? {
        let rules = schemas.map { $0.rules }
        if let problem = rules.lazy.compactMap(\.problem).first { return problem }
        if let same = Dictionary(grouping: rules, by: \.model).values.first(where: { $0.count > 1 }) {
            return "a type has several schemas: \(same.map(\.name).joined(separator: ", "))"
        }
        guard codec.codec != .json, rules.contains(where: \.changesReads) else { return nil }
        return "the codec is \(codec.codec), and only models stored as JSON have defaults and upgrades"
    }

    /// The rules of a type, if they change what is read.
    func ofReads(_ type: Any.Type) -> SchemaRules? {
        changesReads ? rules[ObjectIdentifier(type)].flatMap { $0.changesReads ? $0 : nil } : nil
    }
}
