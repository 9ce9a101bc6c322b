import LarderCommandCatalog
import LarderEngine
import LarderPlatform

/// A rule: what a user, or the members of a group, may do, in all databases or in one.
struct AccessRule: Equatable, Sendable {
    enum Kind: String, Sendable {
        case user, group
    }

    let kind: Kind
    /// As it was given: a name, or a number.
    let who: String
    let number: UInt32
    let level: AccessLevel
    /// Nil for all databases.
    let database: String?

    /// The form in which it is given with `--rights`.
    var text: String { "\(kind.rawValue):\(shortText)" }

    /// The form in which it is given with `--allow-uid` and `--allow-gid`.
    var shortText: String { "\(who)=\(level.name)" + (database.map { "@\($0)" } ?? "") }

    func concerns(_ peer: PeerCredentials) -> Bool {
        switch kind {
        case .user: peer.user == number
        case .group: peer.groups.contains(number)
        }
    }
}

extension AccessRule {
    struct Failure: Error {
        let description: String
    }

    static let rule = "LEVEL is read, write or administer"

    /// Reads the rules in a text, with commas or blanks between them: `alice=write@shop`, and `user:alice=write@shop` where
    /// the kind is not known.
    /// - Throws: all that is wrong with them.
    static func parse(_ text: String, _ kind: Kind?) throws(Failure) -> [AccessRule] {
        var rules: [AccessRule] = []
        var problems: [String] = []
        for word in text.split(whereSeparator: { $0 == "," || $0 == " " || $0 == "\t" }) {
            do throws(Failure) {
                let rule = try AccessRule(String(word), kind)
                if !rules.contains(rule) { rules.append(rule) }
            } catch {
                problems.append(error.description)
            }
        }
        guard problems.isEmpty else { throw Failure(description: problems.joined(separator: "; ")) }
        guard !rules.isEmpty else {
            throw Failure(description: "there is no rule: it is, for example, \(example(kind))")
        }
        return rules
    }

    private static func example(_ kind: Kind?) -> String {
        switch kind {
        case .user: "alice=write@shop"
        case .group: "staff=read"
        case nil: "user:alice=write@shop"
        }
    }

    private init(_ word: String, _ given: Kind?) throws(Failure) {
        var rest = word[...]
        let kind: Kind
        if let given {
            kind = given
        } else {
            let parts = word.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2, let named = Kind(rawValue: parts[0].lowercased()) else {
                let near = Suggestion.text(for: String(parts.first ?? ""), among: ["user", "group"])
                throw Self.failure(word, "it begins with user: or group:\(near)")
            }
            kind = named
            rest = parts[1]
        }
        // Names of users may have an @ in them, those of databases not.
        guard let equals = rest.lastIndex(of: "=") else {
            throw Self.failure(word, "there is no '=': it is, for example, \(Self.example(given))")
        }
        let what = rest[rest.index(after: equals)...]
        let parts = what.split(separator: "@", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        guard let level = AccessLevel(parts[0]) else {
            let near = Suggestion.text(for: parts[0], among: AccessLevel.allCases.map(\.name))
            throw Self.failure(word, "\(Self.rule), not '\(printableKey(parts[0].utf8))'\(near)")
        }
        if parts.count == 2, !DatabaseName.isValid(parts[1]) {
            throw Self.failure(
                word, "'\(printableKey(parts[1].utf8))' is not a database name: \(DatabaseName.rule)")
        }
        self.kind = kind
        who = String(rest[..<equals])
        number = try Self.number(of: who, kind, word)
        self.level = level
        database = parts.count == 2 ? parts[1] : nil
    }

    private static func number(of who: String, _ kind: Kind, _ word: String) throws(Failure) -> UInt32 {
        guard !who.isEmpty else { throw failure(word, "there is no name in front of the '='") }
        if who.utf8.allSatisfy({ (0x30...0x39).contains($0) }) {
            // The last number stands for none.
            guard let number = UInt32(who), number != .max else {
                throw failure(word, "\(who) is no \(kind.rawValue)'s number")
            }
            return number
        }
        guard let number = kind == .user ? User.number(of: who) : Group.number(of: who) else {
            let near = Suggestion.text(for: who, among: kind == .user ? User.localNames : Group.localNames)
            throw failure(word, "there is no \(kind.rawValue) '\(printableKey(who.utf8))'\(near)")
        }
        return number
    }

    private static func failure(_ word: String, _ problem: String) -> Failure {
        Failure(description: "\(printableKey(word.utf8)): \(problem)")
    }
}

/// Who may do what: the rules of all options. Without rules, everybody who can open the socket may do everything.
package struct AccessRules: Equatable, Sendable {
    /// `--allow-uid`
    var users: [AccessRule] = []
    /// `--allow-gid`
    var groups: [AccessRule] = []
    /// `--rights`
    var others: [AccessRule] = []

    package init() {}

    var all: [AccessRule] { users + groups + others }
    var isEmpty: Bool { users.isEmpty && groups.isEmpty && others.isEmpty }

    /// For the log.
    var summary: String {
        isEmpty
            ? "everybody who can open the socket may do everything (--rights)"
            : "\(all.count) rule(s) say who may do what; others may do nothing, root and the daemon's user everything"
    }

    /// The rights of a connection.
    /// - Parameter peer: nil if the system does not tell who it is.
    /// - Returns: nil if there are no rules.
    func rights(of peer: PeerCredentials?) -> Rights? {
        guard !isEmpty else { return nil }
        guard let peer else { return Rights() }
        var rights = Rights()
        // Whoever may stop the daemon and read its files.
        if peer.user == 0 || peer.user == geteuid() { rights.allow(.administer, in: nil) }
        for rule in all where rule.concerns(peer) { rights.allow(rule.level, in: rule.database) }
        return rights
    }
}
