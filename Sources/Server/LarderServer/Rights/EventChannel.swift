/// The channels on which the server tells what happens in a database: `__keyspace@N__:…`, `__keyevent@N__:…` and
/// `__change@N__…`.
enum EventChannel {
    /// The databases whose events a channel or a pattern may bring.
    enum Databases: Equatable {
        case none
        case one(String)
        case all
    }

    private static let starts = ["__keyspace@", "__keyevent@", "__change@"].map { Array($0.utf8) }
    private static let end = Array("__".utf8)

    static func databases(of channel: UnsafeRawBufferPointer) -> Databases {
        guard let start = starts.first(where: { channel.starts(with: $0) }) else { return .none }
        return .one(name(channel[start.count...]))
    }

    /// In doubt more of them: what stands before the first special character decides.
    static func databases(ofPattern pattern: UnsafeRawBufferPointer) -> Databases {
        let special = Array("*?[\\".utf8)
        let literal = pattern.prefix { !special.contains($0) }
        if literal.count == pattern.count { return databases(of: pattern) }
        for start in starts {
            if literal.starts(with: start) {
                // A name that is complete only behind a special character may be that of any database.
                let rest = literal[start.count...]
                return hasEnd(rest) ? .one(name(rest)) : .all
            }
            if start.starts(with: literal) { return .all }
        }
        return .none
    }

    /// What stands before the `__` that ends a name, of which a part may be an underscore itself: before a colon, or at
    /// the end.
    private static func name(_ rest: Slice<UnsafeRawBufferPointer>) -> String {
        let name = rest.prefix { $0 != UInt8(ascii: ":") }
        let isEnded = name.count >= end.count && name.suffix(end.count).elementsEqual(end)
        return String(decoding: isEnded ? name.dropLast(end.count) : name, as: UTF8.self)
    }

    private static func hasEnd(_ rest: Slice<UnsafeRawBufferPointer>) -> Bool {
        // No name of a database has a colon.
        guard let colon = rest.firstIndex(of: UInt8(ascii: ":")) else { return false }
        return rest[..<colon].suffix(end.count).elementsEqual(end)
    }
}
