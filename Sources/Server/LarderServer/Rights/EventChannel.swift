/// The channels on which the server publishes the events of a database: `__keyspace@N__:…`, `__keyevent@N__:…` and
/// `__change@N__…`, where `N` is the name of the database.
enum EventChannel {
    /// The databases whose events are published on a channel, or on channels that match a pattern.
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

    /// Returns the databases whose event channels a pattern may match. The result may contain too many databases, but
    /// never too few: only the text before the first special character is examined.
    static func databases(ofPattern pattern: UnsafeRawBufferPointer) -> Databases {
        let special = Array("*?[\\".utf8)
        let literal = pattern.prefix { !special.contains($0) }
        if literal.count == pattern.count { return databases(of: pattern) }
        for start in starts {
            if literal.starts(with: start) {
                // If the database's name is not complete before the special character, the pattern may match any name.
                let rest = literal[start.count...]
                return hasEnd(rest) ? .one(name(rest)) : .all
            }
            if start.starts(with: literal) { return .all }
        }
        return .none
    }

    /// Returns the database's name: the text up to the `__` before the first colon, or before the end of the channel.
    /// The name itself may contain underscores.
    private static func name(_ rest: Slice<UnsafeRawBufferPointer>) -> String {
        let name = rest.prefix { $0 != UInt8(ascii: ":") }
        let isEnded = name.count >= end.count && name.suffix(end.count).elementsEqual(end)
        return String(decoding: isEnded ? name.dropLast(end.count) : name, as: UTF8.self)
    }

    private static func hasEnd(_ rest: Slice<UnsafeRawBufferPointer>) -> Bool {
        // Database names contain no colon.
        guard let colon = rest.firstIndex(of: UInt8(ascii: ":")) else { return false }
        return rest[..<colon].suffix(end.count).elementsEqual(end)
    }
}
