import LarderCommandCatalog
import LarderEngine
import LarderPlatform
import Synchronization

/// The current access rules, and the refused calls for ACL LOG.
///
/// `@unchecked Sendable`: `lock` guards the rules, the user names, the refusals and the line rates; the rest is atomic.
final class AccessControl: @unchecked Sendable {
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
    private let lock = Lock()
    private var rulesNow: AccessRules
    /// A cache of user names.
    private var names = BoundedTable<uid_t, String>(most: 1024)
    private var denials: [Denial] = []
    // Each kind of log line has its own rate limit, so that many lines of one kind do not suppress the other kind.
    private var refusalLines = LineRate(milliseconds: 1000)
    private var passwordLines = LineRate(milliseconds: 1000)
    private let log: Log

    /// The maximum number of refusals that ACL LOG keeps, as in Redis.
    private static let denialsMax = 128
    /// As in Redis, equal refusals within this time after the last one are counted in the same line of ACL LOG.
    private static let sameMilliseconds: Int64 = 60_000

    init(_ rules: AccessRules, log: Log) {
        rulesNow = rules
        generation = Atomic(rules.isEmpty ? 0 : 1)
        self.log = log
    }

    var rules: AccessRules { lock.withLock { rulesNow } }

    /// Replaces the rules.
    /// - Returns: the previous rules.
    func change(_ rules: AccessRules) -> AccessRules {
        lock.withLock {
            let old = rulesNow
            rulesNow = rules
            generation.add(1)
            return old
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
        lock.withLock { rulesNow.all.contains { $0.kind == .user && $0.who == name } || names.values.contains(name) }
    }

    private func name(of user: uid_t) -> String {
        if let known = lock.withLock({ names[user] }) { return known }
        // Do not hold the lock: a directory service may be slow. Replace white space in the name, because white space
        // separates the fields where the name is shown.
        let name = User.name(of: user).map { String($0.map { $0.isWhitespace ? "_" : $0 }) } ?? String(user)
        lock.withLock { names[user] = name }
        return name
    }

    // MARK: Refusals

    /// Adds a refusal to ACL LOG and counts it. Logs at most one refusal per second.
    /// - Parameter monotonic: the current time of the monotonic clock, in milliseconds.
    func note(_ denial: Denial, monotonic: Int64) {
        if denial.reason == .channel { channelsDenied.add(1) } else { commandsDenied.add(1) }
        let skipped = lock.withLock {
            remember(denial)
            return refusalLines.line(at: monotonic)
        }
        guard let skipped else { return }
        let object = "'\(printableKey(denial.object.utf8))'"
        let what =
            denial.isDisabled
            ? "user \(denial.user) called \(object), which is disabled (--disable-commands)"
            : "user \(denial.user) has no right to \(denial.reason == .command ? "run" : "use \(denial.reason.rawValue)") "
                + "\(object) (--rights)"
        log.warning(what + LineRate.rest(skipped, "refusals"))
    }

    /// Adds a wrong password to ACL LOG and counts it. Logs at most one wrong password per second. The user name is not
    /// logged, because users sometimes enter the password as the user name.
    /// - Parameter who: the connection and its user.
    func notePassword(_ denial: Denial, of who: String, monotonic: Int64) {
        passwordsDenied.add(1)
        let skipped = lock.withLock {
            remember(denial)
            return passwordLines.line(at: monotonic)
        }
        guard let skipped else { return }
        log.warning("\(who) sent a wrong password" + LineRate.rest(skipped, "wrong passwords"))
    }

    /// Adds a refusal, or increases the count of an equal recent one. The caller holds `lock`.
    private func remember(_ denial: Denial) {
        let index = denials.firstIndex {
            $0.reason == denial.reason && $0.context == denial.context && $0.object == denial.object
                && $0.user == denial.user && denial.at - $0.at < Self.sameMilliseconds
        }
        var newest = denial
        if let index { newest.count += denials.remove(at: index).count }
        denials.insert(newest, at: 0)
        if denials.count > Self.denialsMax { denials.removeLast() }
    }

    /// The refusals for ACL LOG, newest first.
    var remembered: [Denial] { lock.withLock { denials } }

    func forget() { lock.withLock { denials = [] } }

    func resetCounts() {
        commandsDenied.store(0, ordering: .relaxed)
        channelsDenied.store(0, ordering: .relaxed)
        passwordsDenied.store(0, ordering: .relaxed)
    }
}
