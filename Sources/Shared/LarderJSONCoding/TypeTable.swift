/// How a coder handles a type, determined once for each type.
enum TypeKind: UInt8 {
    /// A model, which encodes and decodes itself.
    case model
    case bool, string, double, float
    case int, int8, int16, int32, int64, int128
    case uint, uint8, uint16, uint32, uint64, uint128
    case date, data, url, decimal, uuid
    /// An array, an optional, or a dictionary with string keys: see ``DirectlyEncodable``, ``DirectlyDecodable``.
    case direct

    init(_ type: Any.Type) {
        self = Self.standard[ObjectIdentifier(type)] ?? FoundationTypes.kinds[ObjectIdentifier(type)] ?? .model
    }

    private static let standard: [ObjectIdentifier: TypeKind] = [
        ObjectIdentifier(Bool.self): .bool, ObjectIdentifier(String.self): .string,
        ObjectIdentifier(Double.self): .double, ObjectIdentifier(Float.self): .float,
        ObjectIdentifier(Int.self): .int, ObjectIdentifier(Int8.self): .int8, ObjectIdentifier(Int16.self): .int16,
        ObjectIdentifier(Int32.self): .int32, ObjectIdentifier(Int64.self): .int64,
        ObjectIdentifier(Int128.self): .int128, ObjectIdentifier(UInt.self): .uint,
        ObjectIdentifier(UInt8.self): .uint8, ObjectIdentifier(UInt16.self): .uint16,
        ObjectIdentifier(UInt32.self): .uint32, ObjectIdentifier(UInt64.self): .uint64,
        ObjectIdentifier(UInt128.self): .uint128,
    ]
}

/// A cache of the kinds of types, by the type's address, because a cast to a protocol costs more than writing a number.
///
/// Direct-mapped: of two types with the same slot the later one is kept. Single owner.
struct TypeTable<Direct> {
    struct Entry {
        var type: ObjectIdentifier?
        var kind = TypeKind.model
        /// The bytes of an object of the type; for values only those of an indirect case's box.
        var objectBytes = 0
        /// The metatype that codes it if the kind is `direct`.
        var direct: Direct?
    }

    private static var places: Int { 64 }
    private let entries: UnsafeMutablePointer<Entry>

    init() {
        entries = .allocate(capacity: Self.places)
        entries.initialize(repeating: Entry(), count: Self.places)
    }

    func free() {
        entries.deinitialize(count: Self.places)
        entries.deallocate()
    }

    @inline(__always) func entry(_ type: Any.Type, _ direct: (Any.Type) -> Direct?) -> Entry {
        let id = ObjectIdentifier(type)
        // Metadata is at least 8-byte aligned; the product spreads the common bits of nearby addresses.
        let hash = UInt(bitPattern: id.hashValueOfAddress) &* 0x9E37_79B9_7F4A_7C15
        let place = Int(hash >> 58)
        if entries[place].type == id { return entries[place] }
        return find(type, place, direct)
    }

    @inline(never) private func find(_ type: Any.Type, _ place: Int, _ direct: (Any.Type) -> Direct?) -> Entry {
        var entry = Entry(type: ObjectIdentifier(type), kind: TypeKind(type), direct: nil)
        if entry.kind == .model { entry.objectBytes = Made.objectBytes }
        if entry.kind == .model, let found = direct(type) {
            entry.kind = .direct
            entry.direct = found
        }
        entries[place] = entry
        return entry
    }
}

extension ObjectIdentifier {
    @inline(__always) fileprivate var hashValueOfAddress: Int { Int(bitPattern: self) }
}
