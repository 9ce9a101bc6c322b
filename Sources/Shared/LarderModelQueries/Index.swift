import LarderJSONCoding
import LarderModelCoding
import LarderPlatform
import LarderQueries
import LarderVocabulary

/// An index of a database's models: queries on its properties read the matching entries only.
///
/// ```swift
/// let books = try Cache(
///     named: "books", policy: .low,
///     indexes: [Index(\Book.author), Index(\Book.year, .descending(\Book.price)), Index(\Book.tags, prefix: "book:")])
/// ```
/// An index is built in the background; queries examine all entries until it is ready. A database can have 32 indexes
/// of at most eight properties each. An array has a place for each of its elements. Each query examines the entries that
/// have arrays at several properties of an index. Each index makes storing a model a little slower. Declaring an index again does nothing, and other
/// indexes of the database are left alone: drop them with `dropIndexes(except:)`.
///
/// The first models that are stored afterwards are compared with the declared fields. If `CodingKeys` store a property
/// under another name, storing throws `encoding` (`encode` in clients) and names both; pass that name as `at:`. A
/// `Reference`, like other types that are coded as one value, is indexed itself, not by its properties. Drop a wrongly
/// declared index with `dropIndexes(except:)`.
public struct Index: Sendable {
    /// A property of an index, and the direction of its order. A query can also read it backwards, but only in all
    /// properties together.
    public struct Part: Sendable {
        fileprivate let path: String
        fileprivate let isDescending: Bool
        fileprivate var problem: String?
        fileprivate var check: PropertyChecks.Check?

        /// A property in ascending order.
        public static func ascending<Model: Codable & SendableMetatype, Value: Encodable & SendableMetatype>(
            _ property: any KeyPath<Model, Value> & Sendable, at place: String? = nil
        ) -> Part { Part(property, place, isDescending: false) }

        /// A property in descending order.
        public static func descending<Model: Codable & SendableMetatype, Value: Encodable & SendableMetatype>(
            _ property: any KeyPath<Model, Value> & Sendable, at place: String? = nil
        ) -> Part { Part(property, place, isDescending: true) }

        /// When the entry was stored.
        public static let stored = Part(path: "@stored", isDescending: false)

        private init(path: String, isDescending: Bool) { (self.path, self.isDescending) = (path, isDescending) }

        fileprivate init<Model: Codable & SendableMetatype, Value: Encodable & SendableMetatype>(
            _ property: any KeyPath<Model, Value> & Sendable, _ place: String?, isDescending: Bool,
            isGeo: Bool = false
        ) {
            guard let names = place ?? PropertyPath.names(of: property), let path = EditPath(names) else {
                self.init(path: "", isDescending: isDescending)
                problem =
                    "\(property) is not a stored property of the index; pass its name in the JSON, as in at: \"name\"; "
                    + EditPath.unnamed
                return
            }
            self.init(path: names, isDescending: isDescending)
            let noPlace = "an index of places has the field '\(names)', which is not a place: \(QueryPlace.form)"
            check = PropertyChecks.Check(path, property, .index) { isGeo && !QueryPlace.isPlace($0) ? noPlace : nil }
        }
    }

    /// What an index of a ``ComputedIndex`` computes.
    package struct Computed: Sendable {
        package let name: String
        fileprivate let path: QueryPath
        fileprivate let model: String
        fileprivate let problem: String?
        package let values: @Sendable (UnsafeRawBufferPointer, ModelCodec) -> [JSONText]
    }

    private let parts: [Part]
    private let prefix: [UInt8]
    private var isGeo = false
    /// Nil for an index of properties.
    package private(set) var computed: Computed?

    /// Declares an index that begins with a property in ascending order.
    /// - Parameters:
    ///   - property: the first property.
    ///   - others: further properties, for entries that are equal in the previous ones.
    ///   - prefix: the index lists only entries whose keys begin with this. Queries use it if they have
    ///     ``ModelQuery/where(keyPrefix:)``. The default is empty: all entries.
    ///   - place: the name of the first property in the JSON, if it is another one.
    public init<Model: Codable & SendableMetatype, Value: Encodable & SendableMetatype>(
        _ property: any KeyPath<Model, Value> & Sendable, _ others: Part..., prefix: any CacheKey = "",
        at place: String? = nil
    ) {
        parts = [Part(property, place, isDescending: false)] + others
        self.prefix = prefix.keyBytes
    }

    /// Declares an index of these properties.
    public init(_ parts: Part..., prefix: any CacheKey = "") {
        self.parts = parts
        self.prefix = prefix.keyBytes
    }

    /// Declares an index of the places of a property, for ``ModelQuery/where(_:near:within:at:)`` and
    /// ``ModelQuery/where(_:within:at:)``. Places are `[lon, lat]`, or objects with `lon` and `lat`; an array may contain
    /// several. Storing the first model throws `encoding` (`encode` in clients) if its value is not a place, for example
    /// an array with an altitude, or `[lat, lon]` with a longitude above 90. Later such values are stored, but not
    /// found.
    public init<Model: Codable & SendableMetatype, Value: Encodable & SendableMetatype>(
        geo property: any KeyPath<Model, Value> & Sendable, prefix: any CacheKey = "", at place: String? = nil
    ) {
        self.init(Part(property, place, isDescending: false, isGeo: true), prefix: prefix)
        isGeo = true
    }

    /// Converts a computed index, to declare it in a cache of the library. Clients throw `invalidArgument`.
    public init<Model, Value>(_ index: ComputedIndex<Model, Value>) {
        (parts, prefix) = ([], index.prefix)
        let model = ComputedIndex<Model, Value>.modelName
        computed = Computed(name: index.name, path: index.path, model: model, problem: index.problem) {
            index.values(in: $0, $1)
        }
    }

    // MARK: Declaring

    /// The words of INDEX CREATE after the name.
    package var words: [[UInt8]] {
        IndexDefinition.words(prefix: prefix, isOfPlaces: isGeo, parts.map { ($0.path, $0.isDescending) })
    }

    /// Throws if one of the indexes is impossible for models of this codec, or there are too many of them, or two of
    /// one name.
    package static func definitions(
        _ indexes: [Index], _ codec: ModelCodec
    ) throws(QueryError) -> [(index: Index, definition: IndexDefinition)] {
        guard Set(indexes.map(\.name)).count <= IndexRules.countMax else {
            throw QueryError("a database can have \(IndexRules.countMax) indexes")
        }
        var known: [String: IndexDefinition] = [:]
        return try indexes.map { (index) throws(QueryError) in
            let definition = try index.definition(codec)
            guard definition == known.updateValue(definition, forKey: index.name) ?? definition else {
                throw QueryError("the computed index '\(index.computed?.name ?? index.name)' is declared in two ways")
            }
            return (index, definition)
        }
    }

    /// Throws if the index is impossible for models of this codec.
    private func definition(_ codec: ModelCodec) throws(QueryError) -> IndexDefinition {
        if codec.codec != .json { throw QueryError(codec.notJSON) }
        if let problem = parts.lazy.compactMap(\.problem).first { throw QueryError(problem) }
        guard let computed else {
            if parts.isEmpty { throw QueryError("an index needs at least one property") }
            return try IndexDefinition(words)
        }
        if let problem = computed.problem { throw QueryError(problem) }
        guard IndexRules.isValid(name: computed.name), computed.name.count <= Self.lettersMax else {
            throw QueryError(
                "'\(printableKey(computed.name.utf8))' is no name of a computed index: 1 to \(Self.lettersMax) letters, "
                    + "digits, '.', '_' and '-'")
        }
        let order = QueryOrder([QueryOrder.Part(computed.path, isDescending: false)])
        return IndexDefinition(.computed, prefix: prefix, order: order)
    }

    /// The paths, and a hash of the definition: the same name for the same definition in every process. The name of a
    /// computed index, and a hash of the name of its model's type: another version replaces the index.
    package var name: String {
        let letters = (computed?.name ?? parts.map(\.path).joined(separator: "-")).map { letter in
            letter.isASCII && (letter.isLetter || letter.isNumber) || "-._".contains(letter) ? letter : "_"
        }
        let hash = StableHash.fnv1a(computed.map { Array($0.model.utf8) } ?? Array(words.joined(separator: [0])))
        return String(letters.prefix(Self.lettersMax)) + "-" + String(hash, radix: 36).suffix(6)
    }

    /// The maximum number of characters of a name before its hash.
    private static let lettersMax = 48

    /// What is compared when models are stored.
    package var checks: [PropertyChecks.Check] { parts.compactMap(\.check) }
}
