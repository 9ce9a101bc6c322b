import LarderOriginClients
import LarderPlatform

/// The address and the user of an origin, without secrets.
package struct OriginSource: Hashable, Sendable {
    package let url: String
    /// Nil for the user in the URL, or else the server's default user.
    package var user: String?
    /// The file whose first line is the password; nil for none.
    package var passwordPath: String?
}

/// How a database detects changes at its origin, and which servers it reads from.
package struct OriginReads: Hashable, Sendable {
    package enum Hearing: Hashable, Sendable {
        /// The origin tracks the keys that were read, and sends invalidations for them.
        case tracking
        /// The origin sends invalidations for all keys, or for those with one of these prefixes.
        case broadcast(prefixes: [String])
        /// The origin sends no invalidations. Entries are fresh for the policy's interval or their lifetime at the
        /// origin.
        case lifetimes
    }

    package var hearing = Hearing.tracking
    /// The time without a reply after which a replica is read too, in milliseconds; nil for never.
    package var secondReadAfter: Int?

    package static let prefixesMax = 64

    /// In the syntax of ORIGIN.
    fileprivate var words: [String] {
        let hearing: [String] =
            switch self.hearing {
            case .tracking: []
            case .broadcast(let prefixes): ["BCAST"] + prefixes.flatMap { ["PREFIX", $0] }
            case .lifetimes: ["LIFETIMES"]
            }
        return hearing + (secondReadAfter.map { ["REPLICAS", "\($0)"] } ?? [])
    }

    /// Parses an option of ORIGIN and its arguments.
    /// - Returns: false if it is another option.
    fileprivate mutating func take(_ name: String, _ rest: inout ArraySlice<String>) throws(CommandError) -> Bool {
        switch name {
        case "BCAST" where hearing == .tracking: hearing = .broadcast(prefixes: [])
        case "LIFETIMES" where hearing == .tracking: hearing = .lifetimes
        case "PREFIX":
            guard case .broadcast(let prefixes) = hearing, let prefix = rest.popFirst() else { return false }
            guard prefixes.count < Self.prefixesMax else {
                throw CommandError("ERR at most \(Self.prefixesMax) prefixes are allowed")
            }
            // Redis refuses overlapping prefixes too: a key must have only one prefix.
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

/// The settings of a database's origin, as given to ORIGIN.
struct OriginSettings: Hashable, Sendable {
    /// How a write reaches the origin.
    enum Writing: String, Sendable {
        /// The origin acknowledges before the daemon does, and the entry is cached here.
        case through = "THROUGH"
        /// The origin acknowledges before the daemon does, and the cached entry is removed.
        case around = "AROUND"
        /// The daemon acknowledges, and delivers the write to the origin later.
        case behind = "BEHIND"
    }

    let source: OriginSource
    let reads: OriginReads
    let writing: Writing
    /// Whether reads such as GET serve stale entries within their grace while the origin is not available.
    let servesStale: Bool
    /// See ``OriginTier/since``; 0 if all entries come from this origin.
    var since: Int64 = 0

    /// The words after the database's name in the larder's file.
    var words: [String] {
        [source.url, writing.rawValue] + (servesStale ? ["STALE"] : []) + reads.words
            + (source.user.map { ["USER", $0] } ?? []) + (source.passwordPath.map { ["PASSWORDFILE", $0] } ?? [])
    }

    static let syntax =
        "ORIGIN url [THROUGH|AROUND|BEHIND] [STALE] [BCAST [PREFIX prefix]…|LIFETIMES] [REPLICAS milliseconds] "
        + "[USER name] [PASSWORDFILE path] [DISCARD]"

    /// - Parameter words: from a client or from the file; the first is the URL.
    init(words: [String]) throws(CommandError) {
        guard let url = words.first, !words.contains(where: { $0.contains { $0.isWhitespace } || $0.isEmpty }) else {
            throw CommandError("ERR the arguments of ORIGIN must not contain spaces: \(Self.syntax)")
        }
        // Use one form of a socket's address, because both forms are the same origin.
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

    /// Rejects a URL with a password, which would appear in logs and in the larder's files.
    func checkHasNoSecret() throws(CommandError) {
        guard (try? OriginAddress(source.url))?.password == nil else {
            throw CommandError(
                "ERR no passwords in the URL: use a file that only the daemon can read, with PASSWORDFILE path")
        }
    }
}
