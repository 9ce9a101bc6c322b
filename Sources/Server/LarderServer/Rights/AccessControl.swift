import LarderCommandCatalog
import LarderEngine
import LarderPlatform
import Synchronization

/// The current access rules, and a log of refusals.
///
/// `@unchecked Sendable`: the rules, the names and the log are guarded by `lock`; the rest is atomic.
final class AccessControl: @unchecked Sendable {
    /// A refusal, for ACL LOG.
    struct Denial: Sendable {
        enum Reason: String, Sendable {
            case command, database, channel, auth
        }

        let reason: Reason
        /// `toplevel`, `multi` or `lua`.
        let context: String
        /// The command, the database or the channel; for a wrong password, the command that contained it.
        let object: String
        /// For a wrong password, the user name given with it.
        let user: String
        /// Whether the reason is that the command is disabled for all users.
        var isSwitchedOff = false
        /// The line of CLIENT LIST.
        var client: String
        var count = 1
        /// The time of the last refusal, in milliseconds of the engine's time.
        var at: Int64
    }

    /// Changes whenever the rules change; 0 if there were never any rules.
    let generation: Atomic<Int>
    /// Refused commands, refused channels, and wrong passwords.
    let commandsDenied = Atomic<Int>(0)
    let channelsDenied = Atomic<Int>(0)
    let passwordsDenied = Atomic<Int>(0)
    private let lock = Lock()
    private var rulesNow: AccessRules
    private var names: [uid_t: String] = [:]
    private var denials: [Denial] = []
    // Two separate rates, so that lines of one kind do not suppress the other kind.
    private var refusalLines = LineRate(milliseconds: 1000)
    private var passwordLines = LineRate(milliseconds: 1000)
    private let log: Log

    /// The most user names that are remembered.
    private static let namesMax = 1024
    /// The most refusals that are remembered, as in Redis.
    private static let denialsMax = 128
    /// As in Redis, equal refusals within this time are counted as one.
    private static let sameMilliseconds: Int64 = 60_000

    init(_ rules: AccessRules, log: Log) {
        rulesNow = rules
        generation = Atomic(rules.isEmpty ? 0 : 1)
        self.log = log
    }

    var rules: AccessRules { lock.withLock { rulesNow } }

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

    /// The name of a connection's user; `default` without rules, as in Redis. The first lookup of each user may query a
    /// directory service.
    func userName(_ peer: PeerCredentials?) -> String {
        guard !rules.isEmpty else { return "default" }
        return peer.map { name(of: $0.user) } ?? "unknown"
    }

    /// Whether a user name is known, from a rule or a connection.
    func isUser(_ name: String) -> Bool {
        lock.withLock { rulesNow.all.contains { $0.kind == .user && $0.who == name } || names.values.contains(name) }
    }

    private func name(of user: uid_t) -> String {
        if let known = lock.withLock({ names[user] }) { return known }
        // Do not hold the lock: a directory service may be slow. Replace white space, because it separates the output's
        // fields.
        let name = User.name(of: user).map { String($0.map { $0.isWhitespace ? "_" : $0 }) } ?? String(user)
        lock.withLock {
            if names.count >= Self.namesMax { names = [:] }
            names[user] = name
        }
        return name
    }

    // MARK: Refusals

    /// Counts a refusal, and logs at most one per second.
    /// - Parameter at: milliseconds of the engine's time.
    func note(_ denial: Denial, monotonic: Int64) {
        if denial.reason == .channel { channelsDenied.add(1) } else { commandsDenied.add(1) }
        let skipped = lock.withLock {
            remember(denial)
            return refusalLines.line(at: monotonic)
        }
        guard let skipped else { return }
        let object = "'\(printableKey(denial.object.utf8))'"
        let what =
            denial.isSwitchedOff
            ? "user \(denial.user) called \(object), which is disabled (--disable-commands)"
            : "user \(denial.user) has no right to \(denial.reason == .command ? "run" : "use \(denial.reason.rawValue)") "
                + "\(object) (--rights)"
        log.warning(what + LineRate.rest(skipped, "refusals"))
    }

    /// Counts a wrong password, and logs at most one per second. The user name given with the password is not logged,
    /// because users sometimes enter the password there.
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

    /// Called with `lock` held.
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

    /// Newest first.
    var remembered: [Denial] { lock.withLock { denials } }

    func forget() { lock.withLock { denials = [] } }

    func resetCounts() {
        commandsDenied.store(0, ordering: .relaxed)
        channelsDenied.store(0, ordering: .relaxed)
        passwordsDenied.store(0, ordering: .relaxed)
    }
}
