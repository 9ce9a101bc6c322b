import LarderOriginClients

/// Where an origin is and who asks there. Has no secrets.
package struct OriginSource: Hashable, Sendable {
    package let url: String
    /// Nil for the user that the URL names, or the server's default one.
    package var user: String?
    /// The file whose first line is the password; nil for none.
    package var passwordPath: String?
}

/// How a database hears of changes at its origin, and whom it asks.
package struct OriginReads: Hashable, Sendable {
    package enum Hearing: Hashable, Sendable {
        /// The origin notes what was read here, and says when it changes.
        case tracking
        /// It says what changes of all keys, or of those with one of these prefixes.
        case broadcast(prefixes: [String])
        /// It says nothing: what was read is believed for as long as the policy and its own lifetime say.
        case lifetimes
    }

    package var hearing = Hearing.tracking
    /// After so many milliseconds without an answer a replica is asked too; nil for never.
    package var secondReadAfter: Int?

    /// How many prefixes there may be.
    package static let prefixesMax = 64

    /// As ORIGIN has them.
    fileprivate var words: [String] {
        let hearing: [String] =
            switch self.hearing {
            case .tracking: []
            case .broadcast(let prefixes): ["BCAST"] + prefixes.flatMap { ["PREFIX", $0] }
            case .lifetimes: ["LIFETIMES"]
            }
        return hearing + (secondReadAfter.map { ["REPLICAS", "\($0)"] } ?? [])
    }

    /// Takes a word of ORIGIN and what belongs to it.
    /// - Returns: whether it was one of these.
    fileprivate mutating func take(_ name: String, _ rest: inout ArraySlice<String>) throws(CommandError) -> Bool {
        switch name {
        case "BCAST" where hearing == .tracking: hearing = .broadcast(prefixes: [])
        case "LIFETIMES" where hearing == .tracking: hearing = .lifetimes
        case "PREFIX":
            guard case .broadcast(let prefixes) = hearing, let prefix = rest.popFirst() else { return false }
            guard prefixes.count < Self.prefixesMax else {
                throw CommandError("ERR at most \(Self.prefixesMax) prefixes are possible")
            }
            // Redis refuses these too, for each key has one prefix.
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

/// What stands behind a database, as ORIGIN was told.
struct OriginSettings: Hashable, Sendable {
    /// How a write gets there.
    enum Writing: String, Sendable {
        /// The origin acknowledges before the daemon does, and the entry is kept here.
        case through = "THROUGH"
        /// The origin acknowledges before the daemon does, and what is here is forgotten.
        case around = "AROUND"
        /// The daemon acknowledges, and brings it to the origin later.
        case behind = "BEHIND"
    }

    let source: OriginSource
    let reads: OriginReads
    let writing: Writing
    /// Whether GET and the like are answered from what is kept, within its grace, while the origin cannot be asked.
    let servesStale: Bool
    /// See ``OriginTier/since``; 0 if all entries are the origin's.
    var since: Int64 = 0

    /// The words behind the name of a database in the larder's file.
    var words: [String] {
        [source.url, writing.rawValue] + (servesStale ? ["STALE"] : []) + reads.words
            + (source.user.map { ["USER", $0] } ?? []) + (source.passwordPath.map { ["PASSWORDFILE", $0] } ?? [])
    }

    static let syntax =
        "ORIGIN url [THROUGH|AROUND|BEHIND] [STALE] [BCAST [PREFIX prefix]…|LIFETIMES] [REPLICAS milliseconds] "
        + "[USER name] [PASSWORDFILE path] [DISCARD]"

    /// - Parameter words: of a client or of the file; the first is the URL.
    init(words: [String]) throws(CommandError) {
        guard let url = words.first, !words.contains(where: { $0.contains { $0.isWhitespace } || $0.isEmpty }) else {
            throw CommandError("ERR the words of an origin have no spaces: \(Self.syntax)")
        }
        var source = OriginSource(url: url)
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
                    throw CommandError("ERR the password's file is named by its whole path, such as /etc/larder/origin")
                }
                source.passwordPath = path
            } else if ["USER", "PASSWORDFILE"].contains(name), rest.isEmpty {
                throw CommandError("ERR '\(name)' needs a word behind it: \(Self.syntax)")
            } else if try reads.take(name, &rest) {
                continue
            } else {
                throw CommandError("ERR '\(word.prefix(32))' is not possible here: \(Self.syntax)")
            }
        }
        self.source = source
        self.reads = reads
        self.writing = writing ?? .through
        self.servesStale = servesStale
    }

    /// A password in a command would be in logs and in the larder's files.
    func checkHasNoSecret() throws(CommandError) {
        guard (try? OriginAddress(source.url))?.password == nil else {
            throw CommandError(
                "ERR write the password into a file that only the daemon may read, and name it: PASSWORDFILE path")
        }
    }
}
