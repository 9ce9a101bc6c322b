/// The channels on which changes of entries are published: `__change@<database>__:<key>` for changes of one entry, and
/// `__change@<database>__` for changes of a whole database.
enum ChangeChannel {
    private static let start = Array("__change@".utf8)
    private static let end = Array("__".utf8)

    /// Whether a channel or a pattern begins like the channels for changes.
    static func isOne(_ name: [UInt8]) -> Bool { name.starts(with: start) }

    static func database(_ name: String) -> [UInt8] { start + Array(name.utf8) + end }

    static func entry(_ database: String, _ key: [UInt8]) -> [UInt8] {
        self.database(database) + [UInt8(ascii: ":")] + key
    }

    /// Returns the database and the key of a channel for one entry; nil for all other channels.
    static func parse(_ channel: [UInt8]) -> (database: String, key: [UInt8])? {
        // Names of databases contain no colon, so the first colon ends the name.
        guard isOne(channel), let colon = channel.firstIndex(of: UInt8(ascii: ":")) else { return nil }
        let name = channel[start.count..<colon]
        guard name.count > end.count, name.suffix(end.count).elementsEqual(end) else { return nil }
        return (String(decoding: name.dropLast(end.count), as: UTF8.self), Array(channel[(colon + 1)...]))
    }
}
