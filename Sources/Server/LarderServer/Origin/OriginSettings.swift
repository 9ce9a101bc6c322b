import LarderOriginClients
import LarderPlatform

/// The address of an origin and the name of the user to log in as. Contains no password.
package struct OriginSource: Hashable, Sendable {
    package let url: String
    /// The user to log in as; if nil, the user in the URL, or else the server's default user.
    package var user: String?
    /// The file whose first line is the password; nil for none.
    package var passwordPath: String?
}

/// How a database notices changes at its origin, and whether it also reads from replicas.
package struct OriginReads: Hashable, Sendable {
    package enum Hearing: Hashable, Sendable {
        /// The origin remembers which keys were read, and sends invalidations for them (CLIENT TRACKING).
        case tracking
        /// The origin sends invalidations for all keys, or for all keys with one of these prefixes.
        case broadcast(prefixes: [String])
        /// The origin sends no invalidations. A cached entry is fresh until the policy's interval or the entry's
        /// lifetime at the origin ends, whichever is first.
        case lifetimes
    }

    package var hearing = Hearing.tracking
    /// The time without a reply after which the key is also read from a replica, in milliseconds; nil for never.
    package var secondReadAfter: Int?

    package static let prefixesMax = 64

    /// These settings as arguments of the ORIGIN command.
    fileprivate var words: [String] {
        let hearing: [String] =
            switch self.hearing {
            case .tracking: []
            case .broadcast(let prefixes): ["BCAST"] + prefixes.flatMap { ["PREFIX", $0] }
            case .lifetimes: ["LIFETIMES"]
            }
        return hearing + (secondReadAfter.map { ["REPLICAS", "\($0)"] } ?? [])
    }

    /// Parses an option of the ORIGIN command, and removes the option's arguments from `rest`.
    /// - Returns: false if the option is unknown, repeated or incomplete.
    fileprivate mutating func take(_ name: String, _ rest: inout ArraySlice<String>) throws(CommandError) -> Bool {
        switch name {
        case "BCAST" where hearing == .tracking: hearing = .broadcast(prefixes: [])
        case "LIFETIMES" where hearing == .tracking: hearing = .lifetimes
        case "PREFIX":
            guard case .broadcast(let prefixes) = hearing, let prefix = rest.popFirst() else { return false }
            guard prefixes.count < Self.prefixesMax else {
                throw CommandError("ERR at most \(Self.prefixesMax) prefixes are allowed")
            }
            // Redis refuses overlapping prefixes too: each key may match only one prefix.
            if let other = prefixes.first(where: { $0.hasPrefix(prefix) || prefix.hasPrefix($0) }) {
                throw CommandError(
                    "ERR the prefixes '\(other)' and '\(prefix)' overlap: one must not begin with the other")
            }
            hearing = .broadcast(prefixes: prefixes + [prefix])
        case "REPLICAS" where secondReadAfter == nil:
            guard let word = rest.popFirst(), let milliseconds = Int(word), (1...60_000).contains(milliseconds) else {
                throw CommandError("ERR REPLICAS takes milliseconds, 1 to 60000")
            }
            secondReadAfter = milliseconds
        default: return false
        }
        return true
    }
}

/// The settings of a database's origin, as the ORIGIN command sets them.
struct OriginSettings: Hashable, Sendable {
    /// How a write reaches the origin.
    enum Writing: String, Sendable {
        /// Write-through: the origin acknowledges a write before the daemon replies, and the entry is cached.
        case through = "THROUGH"
        /// Write-around: the origin acknowledges a write before the daemon replies, and a cached entry is removed.
        case around = "AROUND"
        /// Write-behind: the daemon replies immediately, and delivers the write to the origin later.
        case behind = "BEHIND"
    }

    let source: OriginSource
    let reads: OriginReads
    let writing: Writing
    /// Whether reads such as GET serve stale entries while the origin is not available. Each entry is served until its
    /// grace period ends.
    let servesStale: Bool
    /// Entries stored before this time do not come from this origin: see ``OriginTier/since``. 0 if all entries come
    /// from this origin.
    var since: Int64 = 0

    /// These settings in the format of ``OriginFile``, without the name of the database.
    var words: [String] {
        [source.url, writing.rawValue] + (servesStale ? ["STALE"] : []) + reads.words
            + (source.user.map { ["USER", $0] } ?? []) + (source.passwordPath.map { ["PASSWORDFILE", $0] } ?? [])
    }

    static let syntax =
        "ORIGIN url [THROUGH|AROUND|BEHIND] [STALE] [BCAST [PREFIX prefix]…|LIFETIMES] [REPLICAS milliseconds] "
        + "[USER name] [PASSWORDFILE path] [DISCARD]"

    /// - Parameter words: the arguments of the ORIGIN command, or the words of a stored line. The first one is the URL.
    init(words: [String]) throws(CommandError) {
        guard let url = words.first, !words.contains(where: { $0.contains { $0.isWhitespace } || $0.isEmpty }) else {
            throw CommandError("ERR the arguments of ORIGIN must not contain spaces: \(Self.syntax)")
        }
        // The path of a Unix socket can be written in two forms. Store one form, so that equal origins compare as
        // equal.
        var source = OriginSource(url: UnixSocket.path(inURL: url).map { "unix://\($0)" } ?? url)
        var writing: Writing?
        var reads = OriginReads()
        var servesStale = false
        var rest = words.dropFirst()
        while let word = rest.popFirst() {
            let name = word.uppercased()
            if let found = Writing(rawValue: name), writing == nil {
                writing = found
            } else if name == "STALE", !servesStale {
                servesStale = true
            } else if name == "USER", source.user == nil, let user = rest.popFirst() {
                source.user = user
            } else if name == "PASSWORDFILE", source.passwordPath == nil, let path = rest.popFirst() {
                guard path.hasPrefix("/") else {
                    throw CommandError("ERR PASSWORDFILE needs an absolute path, such as /etc/larder/origin")
                }
                source.passwordPath = path
            } else if ["USER", "PASSWORDFILE"].contains(name), rest.isEmpty {
                throw CommandError("ERR '\(name)' needs an argument: \(Self.syntax)")
            } else if try reads.take(name, &rest) {
                continue
            } else {
                throw CommandError("ERR '\(word.prefix(32))' is not allowed here: \(Self.syntax)")
            }
        }
        self.source = source
        self.reads = reads
        self.writing = writing ?? .through
        self.servesStale = servesStale
    }

    /// Rejects a URL that contains a password: the password would be visible in logs and in the larder's files.
    func checkHasNoSecret() throws(CommandError) {
        guard (try? OriginAddress(source.url))?.password == nil else {
            throw CommandError(
                "ERR no passwords in the URL: use a file that only the daemon can read, with PASSWORDFILE path")
        }
    }
}

/// The origins of all databases in their stored format: one line of text per database, then the checksum of the
/// preceding text. The text is stored in the ledger, the larder's internal database, under the name `factName`. Earlier
/// versions stored it in the file `ORIGINS`.
struct OriginFile {
    static let factName = "origins"
    static let fileName = "ORIGINS"
    static let fileBytesMax = 16 << 20
    private static let since = "SINCE"
    private static let head = "larder-origins 1\n"

    enum Defect: Error {
        case damaged
    }

    /// The settings of each origin, by the name of its database.
    var settings: [String: OriginSettings] = [:]

    var bytes: [UInt8] {
        var text = Self.head
        for (name, origin) in settings.sorted(by: { $0.key < $1.key }) {
            text += ([name] + origin.words + Self.words(since: origin.since)).joined(separator: " ") + "\n"
        }
        return Array((text + "crc64 " + Self.checksum(text) + "\n").utf8)
    }

    init() {}

    init(parsing bytes: [UInt8]) throws(Defect) {
        guard let text = String(validating: bytes, as: UTF8.self), text.hasPrefix(Self.head), text.hasSuffix("\n")
        else { throw .damaged }
        var lines = text.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
        guard let last = lines.popLast() else { throw .damaged }
        let body = lines.map { $0 + "\n" }.joined()
        guard last == "crc64 " + Self.checksum(body) else { throw .damaged }
        for line in lines.dropFirst() {
            var words = line.split(separator: " ").map(String.init)
            var since: Int64 = 0
            if words.count > 3, words[words.count - 2] == Self.since {
                guard let instant = Int64(words[words.count - 1]) else { throw .damaged }
                since = instant
                words.removeLast(2)
            }
            guard let name = words.first, words.count > 1,
                var origin = try? OriginSettings(words: Array(words.dropFirst()))
            else { throw .damaged }
            origin.since = since
            settings[name] = origin
        }
    }

    private static func words(since: Int64) -> [String] { since > 0 ? [Self.since, "\(since)"] : [] }

    private static func checksum(_ text: String) -> String {
        String(Array(text.utf8).withUnsafeBytes(CRC64.checksum), radix: 16)
    }
}
