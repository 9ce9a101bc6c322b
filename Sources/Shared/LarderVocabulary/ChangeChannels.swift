/// The channels on which a daemon publishes changes of a database's entries: `__change@<database>__:<key>` for changes
/// of one entry, and `__change@<database>__` for changes of the whole database. See docs/Protocol.md.
package struct ChangeChannels: Sendable {
    private static let start = Array("__change@".utf8)
    private static let end = Array("__".utf8)

    /// The channel for changes that affect all entries, such as purges.
    package let all: [UInt8]

    package init(_ database: String) { all = Self.start + Array(database.utf8) + Self.end }

    /// Returns the channel for changes of one entry.
    package func of(_ key: [UInt8]) -> [UInt8] { all + [UInt8(ascii: ":")] + key }

    /// Returns a pattern that matches the channels of all entries whose keys begin with a prefix.
    package func pattern(prefix: [UInt8]) -> [UInt8] { of(GlobPattern.prefix(prefix)) }

    /// Returns the key in the name of one of these channels; nil for the channel ``all``.
    package func key(in channel: [UInt8]) -> [UInt8]? {
        channel.count > all.count ? Array(channel.dropFirst(all.count + 1)) : nil
    }

    /// Whether a channel or a pattern begins like the channels for changes.
    package static func isOne(_ name: [UInt8]) -> Bool { name.starts(with: start) }

    /// Returns the database and the key of a channel for one entry; nil for all other channels.
    package static func parse(_ channel: [UInt8]) -> (database: String, key: [UInt8])? {
        // Names of databases contain no colon, so the first colon ends the name.
        guard isOne(channel), let colon = channel.firstIndex(of: UInt8(ascii: ":")) else { return nil }
        let name = channel[start.count..<colon]
        guard name.count > end.count, name.suffix(end.count).elementsEqual(end) else { return nil }
        return (String(decoding: name.dropLast(end.count), as: UTF8.self), Array(channel[(colon + 1)...]))
    }
}

/// A change that followers of a database apply to their copies.
/// - `Entry`: an entry with its key and metadata.
package enum FeedChange<Entry> {
    case stored(Entry)
    case removed(key: [UInt8])
    /// All entries of the database were purged.
    case purged
    /// The entries with this key prefix were purged. A follower must also remove entries that the larder had evicted
    /// before.
    case purgedPrefix([UInt8])
    /// The entries with at least one of these tags were removed or have become stale.
    case purgedTags([[UInt8]])
}

extension FeedChange: Sendable where Entry: Sendable {}
