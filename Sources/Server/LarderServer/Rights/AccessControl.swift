import LarderCommandCatalog
import LarderEngine
import LarderPlatform
import Synchronization

/// The current access rules, and the refused calls for ACL LOG. Thread-safe.
final class AccessControl: Sendable {
    /// One line of ACL LOG: a call that was refused, or a wrong password.
    struct Denial: Sendable {
        enum Reason: String, Sendable {
            case command, database, channel, auth
        }

        let reason: Reason
        /// Where the command was called: `toplevel`, in a transaction (`multi`), or in a script (`lua`).
        let context: String
        /// The refused command, database or channel; for a wrong password, the command that contained the password.
        let object: String
        /// The connection's user; for a wrong password, the user name that was given with it.
        let user: String
        /// Whether the command was refused because `--disable-commands` disables it for all users.
        var isDisabled = false
        /// The client, in the format of CLIENT LIST.
        var client: String
        var count = 1
        /// The time of the last refusal, in milliseconds of the engine's clock.
        var at: Int64
    }

    /// Increases with each change of the rules; 0 if there were never any rules. Each session stores the number with
    /// which its rights were determined. If the numbers differ, the session's rights are out of date.
    let generation: Atomic<Int>
    /// The counts of refused commands (or databases), refused channels, and wrong passwords, in this order.
    let commandsDenied = Atomic<Int>(0)
    let channelsDenied = Atomic<Int>(0)
    let passwordsDenied = Atomic<Int>(0)
    private let currentRules: Locked<AccessRules>
    /// A cache of user names.
    private let names = Locked(BoundedTable<uid_t, String>(most: 1024))
    private let denials = Locked<[Denial]>([])
    // Each kind of log line has its own limit, so that many lines of one kind do not suppress the other kind.
    private let refusalLines: LimitedLines
    private let passwordLines: LimitedLines

    /// The maximum number of refusals that ACL LOG keeps, as in Redis.
    private static let denialsMax = 128
    /// As in Redis, equal refusals within this time after the last one are counted in the same line of ACL LOG.
    private static let sameMilliseconds: Int64 = 60_000

    /// - Parameter clock: returns the time of the monotonic clock, in milliseconds.
    init(_ rules: AccessRules, log: Log, clock: @escaping @Sendable () -> Int64) {
        currentRules = Locked(rules)
        generation = Atomic(rules.isEmpty ? 0 : 1)
        refusalLines = LimitedLines(log, burst: 1, clock: clock) { LineRate.rest($0, "refusals") }
        passwordLines = LimitedLines(log, burst: 1, clock: clock) { LineRate.rest($0, "wrong passwords") }
    }

    var rules: AccessRules { currentRules.withLock { $0 } }

    /// Replaces the rules.
    /// - Returns: the previous rules.
    func change(_ rules: AccessRules) -> AccessRules {
        currentRules.withLock { current in
            defer { current = rules }
            generation.add(1)
            return current
        }
    }

    // MARK: Users

    /// Returns the name of a connection's user; as in Redis, `default` if there are no rules. The first call for each
    /// user may query a directory service, which can take long.
    func userName(_ peer: PeerCredentials?) -> String {
        guard !rules.isEmpty else { return "default" }
        return peer.map { name(of: $0.user) } ?? "unknown"
    }

    /// Whether a rule names this user, or a user of this name has connected.
    func isUser(_ name: String) -> Bool {
        rules.all.contains { $0.kind == .user && $0.who == name } || names.withLock { $0.values.contains(name) }
    }

    private func name(of user: uid_t) -> String {
        if let known = names.withLock({ $0[user] }) { return known }
        // Do not hold the lock: a directory service may be slow. Replace white space in the name, because white space
        // separates the fields where the name is shown.
        let name = User.name(of: user).map { String($0.map { $0.isWhitespace ? "_" : $0 }) } ?? String(user)
        names.withLock { $0[user] = name }
        return name
    }

    // MARK: Refusals

    /// Adds a refusal to ACL LOG and counts it. Logs at most one refusal per second.
    func note(_ denial: Denial) {
        if denial.reason == .channel { channelsDenied.add(1) } else { commandsDenied.add(1) }
        remember(denial)
        let object = "'\(printableKey(denial.object.utf8))'"
        let what =
            denial.isDisabled
            ? "user \(denial.user) called \(object), which is disabled (--disable-commands)"
            : "user \(denial.user) has no right to \(denial.reason == .command ? "run" : "use \(denial.reason.rawValue)") "
                + "\(object) (--rights)"
        refusalLines.add(.warning, what)
    }

    /// Adds a wrong password to ACL LOG and counts it. Logs at most one wrong password per second. The user name is not
    /// logged, because users sometimes enter the password as the user name.
    /// - Parameter who: the connection and its user.
    func notePassword(_ denial: Denial, of who: String) {
        passwordsDenied.add(1)
        remember(denial)
        passwordLines.add(.warning, "\(who) sent a wrong password")
    }

    /// Adds a refusal, or increases the count of an equal recent one.
    private func remember(_ denial: Denial) {
        denials.withLock { denials in
            let index = denials.firstIndex {
                $0.reason == denial.reason && $0.context == denial.context && $0.object == denial.object
                    && $0.user == denial.user && denial.at - $0.at < Self.sameMilliseconds
            }
            var newest = denial
            if let index { newest.count += denials.remove(at: index).count }
            denials.insert(newest, at: 0)
            if denials.count > Self.denialsMax { denials.removeLast() }
        }
    }

    /// The refusals for ACL LOG, newest first.
    var remembered: [Denial] { denials.withLock { $0 } }

    func forget() { denials.withLock { $0 = [] } }

    func resetCounts() {
        commandsDenied.store(0, ordering: .relaxed)
        channelsDenied.store(0, ordering: .relaxed)
        passwordsDenied.store(0, ordering: .relaxed)
    }
}
