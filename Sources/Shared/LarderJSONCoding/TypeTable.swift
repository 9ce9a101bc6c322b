/// How the coders handle a type.
enum TypeKind: UInt8 {
    /// A type that encodes and decodes itself with `encode(to:)` and `init(from:)`.
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

/// A cache of the kinds of types, by the address of the type, because casting a type to a protocol is slow.
///
/// Direct-mapped: if two types have the same slot, the slot contains the type used last. For one thread at a time.
struct TypeTable<Direct> {
    struct Entry {
        var type: ObjectIdentifier?
        var kind = TypeKind.model
        /// The memory to count for each decoded model of the type, in case it is an object or an indirect enum case.
        var objectBytes = 0
        /// The metatype that encodes or decodes the type if the kind is `direct`; otherwise nil.
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
        // Addresses of types are similar and aligned to 8 bytes. The multiplication distributes them over the slots.
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
