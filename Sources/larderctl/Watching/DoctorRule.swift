import LarderClient
import LarderPlatform

/// The state of a daemon that `larderctl doctor` checks.
struct DoctorFacts {
    var info = InfoText("")
    /// The settings, by their names in CONFIG.
    var settings: [String: String] = [:]
    var databases: [(name: String, state: String)] = []
    /// The connections in CLIENT LIST: for each, its fields by name.
    var clients: [[String: String]] = []
    /// The times of the commands in the slow log, except administrative ones, in seconds since 1970.
    var slowTimes: [Int64] = []
    /// The free and the total space of the larder's file system, in bytes; nil if this user cannot determine it.
    var disk: (free: Int, total: Int)?
    /// Whether other users can write to the larder's directory; false if this user cannot determine it.
    var isLarderOpenToOthers = false
    /// Whether any user of the machine can connect to the socket; nil if unknown.
    var isSocketOpenToAll: Bool?
    /// The errors of origins that are down, by the name of the database.
    var originErrors: [String: String] = [:]
    /// The sources that could not be read, each with the reason.
    var unseen: [Source: String] = [:]

    /// The sources that some users must not read.
    enum Source {
        case databases, settings, clients, slowLog, disk
    }

    func number(_ name: String) -> Int64 { info.integer(name) }
    /// The origins that this user may see: for each, its database and its fields in INFO.
    var origins: [(database: String, fields: [Substring: Substring])] {
        info.textLists("origin_").map { name, parts in (name, Dictionary(parts.map { ($0.name, $0.text) }) { $1 }) }
    }
    var reads: Int64 { number("keyspace_hits") + number("keyspace_misses") }
    /// Whether less than 5 % of the larder's file system is free.
    var isDiskFull: Bool { disk.map { $0.total > 0 && $0.free < $0.total / 20 } ?? false }
    /// The number of commands with a reply, including commands that the daemon rejected without running them.
    var answered: Int64 {
        info.commands.values.reduce(info.integer("total_commands_processed")) { $0 + min(max(0, $1.rejected), 1 << 40) }
    }
    /// The number (errno) of the error with which writes fail; 0 if writes do not fail, or the number is unknown.
    var writeErrorNumber: Int32 { Int32(clamping: info.integer("last_write_errno")) }
    /// The smallest limit of the larder's files, in bytes.
    static let diskLimitMin: Int64 = 16 << 20
    /// Advice for a full disk if the larder's limit cannot be lowered; nil if it can be lowered.
    var remedyAtLeastLimit: String? {
        (1...Self.diskLimitMin).contains(info.integer("disk_limit"))
            ? "remove other files; the larder's limit (max-disk) is already the smallest one" : nil
    }
    /// What to do if writes fail with this error; nil if writes do not fail, or the error is unusual.
    var writeRemedy: String? {
        switch writeErrorNumber {
        case ENOSPC:
            remedyAtLeastLimit
                ?? "remove other files, or lower the larder's limit: larderctl CONFIG SET max-disk BYTES"
        case EDQUOT: "raise the disk quota of the daemon's user, or remove other files of this user"
        case EFBIG: "raise the daemon's limit of file sizes (ulimit -f, LimitFSIZE), and restart it"
        case EROFS: "see dmesg for the reason, usually a failing disk; then remount the file system writable"
        case EIO: "the disk is failing: see dmesg, and move the larder to another disk"
        case EACCES, EPERM: "allow the daemon's user to write to the larder's directory (chown, chmod)"
        case ENOENT:
            "put the missing directory back (the log names it), or restart larderd, which loses what it contains"
        default: nil
        }
    }
    /// The daemon's time in seconds since 1970.
    var now: Int64 { info.integer("server_time_usec") / 1_000_000 }
}

/// A rule of `larderctl doctor`: a condition of the daemon's state that is a problem, with advice.
struct DoctorRule: Sendable {
    enum Weight: String, Sendable {
        /// Something does not work, or data was lost or may be lost.
        case problem
        /// A setting or a way of use that wastes resources or is risky.
        case advice
    }

    let name: String
    let weight: Weight
    /// The condition for a finding, with the thresholds, for the docs.
    let condition: String
    /// What to do about a finding.
    let remedy: String
    /// The source that the rule needs in addition to INFO; nil if it needs none.
    var needs: DoctorFacts.Source?
    /// Returns more specific advice than `remedy`; nil if there is none.
    var advise: @Sendable (DoctorFacts) -> String? = { _ in nil }
    /// Checks the condition. Returns the figures for the message; nil if there is no finding.
    let find: @Sendable (DoctorFacts) -> String?

    init(
        _ weight: Weight, _ name: String, _ condition: String, _ remedy: String, needs: DoctorFacts.Source? = nil,
        advise: @escaping @Sendable (DoctorFacts) -> String? = { _ in nil },
        find: @escaping @Sendable (DoctorFacts) -> String?
    ) {
        (self.name, self.weight, self.condition, self.remedy, self.needs) = (name, weight, condition, remedy, needs)
        (self.advise, self.find) = (advise, find)
    }

    struct Finding: JSONValue {
        let rule: DoctorRule
        let figures: String
        let remedy: String

        var text: String { "\(rule.name): \(figures); \(remedy)" }

        var json: JSONText {
            ["rule": rule.name, "weight": rule.weight.rawValue, "figures": figures, "remedy": remedy]
        }
    }

    /// A rule that could not be checked, and the reason.
    struct Omission: JSONValue {
        let rule: DoctorRule
        let reason: String

        var text: String { "\(rule.name): not checked: \(reason)" }

        var json: JSONText { ["rule": rule.name, "reason": reason] }
    }

    static let all: [DoctorRule] = damage + disk + work + people

    static func findings(_ facts: DoctorFacts) -> [Finding] {
        all.compactMap { rule in
            rule.find(facts).map { Finding(rule: rule, figures: $0, remedy: rule.advise(facts) ?? rule.remedy) }
        }
    }

    /// Returns the rules that could not be fully checked: they have no finding, but their source could not be read.
    static func omissions(_ facts: DoctorFacts) -> [Omission] {
        all.compactMap { rule in
            guard let reason = rule.needs.flatMap({ facts.unseen[$0] }), rule.find(facts) == nil else { return nil }
            return Omission(rule: rule, reason: reason)
        }
    }

    /// The rules as a Markdown table, for the docs.
    static var table: String {
        "| finding | when | what to do |\n|---|---|---|\n"
            + all.map { "| `\($0.name)` (\($0.weight.rawValue)) | \($0.condition) | \($0.remedy) |\n" }.joined()
    }
}
