import LarderCommandCatalog
import LarderEngine
import LarderPlatform
import LarderServices

/// A rule that grants a right to a user or the members of a group, in all databases or in one.
struct AccessRule: Equatable, Sendable {
    enum Kind: String, Sendable {
        case user, group
    }

    let kind: Kind
    /// The name or number of the user or group, as given in the option.
    let who: String
    let number: UInt32
    let level: AccessLevel
    /// The database in which the right is granted; nil for all databases.
    let database: String?

    /// The rule in the syntax of `--rights`.
    var text: String { "\(kind.rawValue):\(shortText)" }

    /// The rule in the syntax of `--allow-uid` and `--allow-gid`.
    var shortText: String { "\(who)=\(level.name)" + (database.map { "@\($0)" } ?? "") }

    func concerns(_ peer: PeerCredentials) -> Bool {
        switch kind {
        case .user: peer.user == number
        case .group: peer.groups.contains(number)
        }
    }
}

extension AccessRule {
    static let rule = "LEVEL is read, write or administer"

    /// Parses rules that are separated by commas or white space. A rule is like `alice=write@shop` if `kind` is given,
    /// and like `user:alice=write@shop` if `kind` is nil.
    /// - Throws: one failure that describes all errors in the text.
    static func parse(_ text: String, _ kind: Kind?) throws(UsageError) -> [AccessRule] {
        var rules: [AccessRule] = []
        var problems: [String] = []
        for word in text.split(whereSeparator: { $0 == "," || $0 == " " || $0 == "\t" }) {
            do throws(UsageError) {
                let rule = try AccessRule(String(word), kind)
                if !rules.contains(rule) { rules.append(rule) }
            } catch {
                problems.append(error.description)
            }
        }
        guard problems.isEmpty else { throw UsageError(problems.joined(separator: "; ")) }
        guard !rules.isEmpty else { throw UsageError("there is no rule; an example: \(example(kind))") }
        return rules
    }

    private static func example(_ kind: Kind?) -> String {
        switch kind {
        case .user: "alice=write@shop"
        case .group: "staff=read"
        case nil: "user:alice=write@shop"
        }
    }

    private init(_ word: String, _ given: Kind?) throws(UsageError) {
        var rest = word[...]
        let kind: Kind
        if let given {
            kind = given
        } else {
            let parts = word.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2, let named = Kind(rawValue: parts[0].lowercased()) else {
                let near = Suggestion.text(for: String(parts.first ?? ""), among: ["user", "group"])
                throw Self.failure(word, "it must start with user: or group:\(near)")
            }
            kind = named
            rest = parts[1]
        }
        // User names may contain an @, but database names cannot: search from the end.
        guard let equals = rest.lastIndex(of: "=") else {
            throw Self.failure(word, "there is no '='; an example: \(Self.example(given))")
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

    private static func number(of who: String, _ kind: Kind, _ word: String) throws(UsageError) -> UInt32 {
        guard !who.isEmpty else { throw failure(word, "there is no name before the '='") }
        if who.utf8.allSatisfy({ (0x30...0x39).contains($0) }) {
            // The largest number is not a valid ID: system calls use it for "no user" and "no group".
            guard let number = UInt32(who), number != .max else {
                throw failure(word, "no \(kind.rawValue) can have the number \(who)")
            }
            return number
        }
        guard let number = kind == .user ? User.number(of: who) : Group.number(of: who) else {
            let near = Suggestion.text(for: who, among: kind == .user ? User.localNames : Group.localNames)
            throw failure(word, "there is no \(kind.rawValue) '\(printableKey(who.utf8))'\(near)")
        }
        return number
    }

    private static func failure(_ word: String, _ problem: String) -> UsageError {
        UsageError("\(printableKey(word.utf8)): \(problem)")
    }
}

/// The access rules from all options. If there are none, any user who can connect has all rights.
package struct AccessRules: Equatable, Sendable {
    /// The rules of `--allow-uid`.
    var users: [AccessRule] = []
    /// The rules of `--allow-gid`.
    var groups: [AccessRule] = []
    /// The rules of `--rights`.
    var others: [AccessRule] = []

    package init() {}

    var all: [AccessRule] { users + groups + others }
    var isEmpty: Bool { users.isEmpty && groups.isEmpty && others.isEmpty }

    /// The line that the daemon logs about its rules.
    var summary: String {
        isEmpty
            ? "any user who can connect has all rights (--rights)"
            : counted(all.count, "access rule")
                + "; other users have no rights, root and the daemon's user have all rights"
    }

    /// Returns the rights of a connection.
    /// - Parameter peer: the user and groups of the connected process; nil if the system does not report them.
    /// - Returns: nil if there are no rules, so that every call is allowed.
    func rights(of peer: PeerCredentials?) -> Rights? {
        guard !isEmpty else { return nil }
        guard let peer else { return Rights() }
        var rights = Rights()
        // Always grant root and the daemon's user all rights: they can stop the daemon and read its files anyway.
        if peer.user == 0 || peer.user == geteuid() { rights.allow(.administer, in: nil) }
        for rule in all where rule.concerns(peer) { rights.allow(rule.level, in: rule.database) }
        return rights
    }
}
