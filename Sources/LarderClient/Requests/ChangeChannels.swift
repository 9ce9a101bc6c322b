/// The channels to which a daemon publishes changes of a database's entries: see docs/Protocol.md.
struct ChangeChannels {
    /// The channel for changes that affect all entries, such as purges.
    let all: [UInt8]

    init(_ database: String) { all = Array("__change@\(database)__".utf8) }

    /// Returns the channel for changes of one entry.
    func of(_ key: [UInt8]) -> [UInt8] { all + [UInt8(ascii: ":")] + key }

    /// Returns a pattern that matches the channels of all entries whose keys begin with a prefix.
    func pattern(prefix: [UInt8]) -> [UInt8] {
        of(prefix.flatMap { "*?[]\\^-".utf8.contains($0) ? [UInt8(ascii: "\\"), $0] : [$0] }) + [UInt8(ascii: "*")]
    }

    /// Returns the key in the name of a channel; nil for the channel ``all``.
    func key(in channel: [UInt8]) -> [UInt8]? {
        channel.count > all.count ? Array(channel.dropFirst(all.count + 1)) : nil
    }
}
