/// The state of a daemon, as checked by `larderctl doctor`. A value.
struct DoctorFacts {
    struct Database {
        let name: String
        let state: String
    }

    var info = InfoFigures("")
    /// Settings, by their names in CONFIG.
    var settings: [String: String] = [:]
    var databases: [Database] = []
    /// The fields of CLIENT LIST, one dictionary per connection.
    var clients: [[String: String]] = []
    /// The times of the slow log's commands from programs, in seconds since 1970.
    var slowTimes: [Int64] = []
    /// The space of the larder's file system, in bytes; nil if unknown on this machine.
    var disk: (free: Int, total: Int)?
    /// Whether any user of the machine can connect to the socket; nil if unknown.
    var isSocketOpenToAll: Bool?
    /// The reasons why origins are down, by the name of their database.
    var originErrors: [String: String] = [:]
    /// The sources that could not be read, with the reasons.
    var unseen: [Source: String] = [:]

    /// Sources that not every user may read.
    enum Source {
        case databases, settings, clients, slowLog, disk
    }

    var reads: Int64 { info.number("keyspace_hits") + info.number("keyspace_misses") }
    /// Whether less than 5 % of the larder's file system is free.
    var isDiskFull: Bool { disk.map { $0.total > 0 && $0.free < $0.total / 20 } ?? false }
    /// The number of commands that got a reply, including refused commands that did not run.
    var answered: Int64 {
        info.commands.values.reduce(info.number("total_commands_processed")) { $0 + min(max(0, $1.rejected), 1 << 40) }
    }
    /// The daemon's time in seconds since 1970.
    var now: Int64 { info.number("server_time_usec") / 1_000_000 }
}

/// A rule of `larderctl doctor`.
struct DoctorRule: Sendable {
    enum Weight: String, Sendable {
        /// Data is lost, or may be.
        case problem
        /// A setting or a usage that wastes resources.
        case advice
    }

    let name: String
    let weight: Weight
    /// The condition of a finding, with the thresholds.
    let condition: String
    /// The advice.
    let remedy: String
    /// The source that it needs in addition to INFO.
    var needs: DoctorFacts.Source?
    /// Checks the condition. Returns the figures of the finding; nil if there is none.
    let find: @Sendable (DoctorFacts) -> String?

    struct Finding {
        let rule: DoctorRule
        let figures: String

        var text: String { "\(rule.name): \(figures); \(rule.remedy)" }

        var json: JSONText {
            .object([
                ("rule", .text(rule.name)), ("weight", .text(rule.weight.rawValue)), ("figures", .text(figures)),
                ("remedy", .text(rule.remedy)),
            ])
        }
    }

    /// A rule that could not be checked, and the reason.
    struct Omission {
        let rule: DoctorRule
        let reason: String

        var text: String { "\(rule.name): not checked: \(reason)" }

        var json: JSONText { .object([("rule", .text(rule.name)), ("reason", .text(reason))]) }
    }

    static let all: [DoctorRule] = damage + disk + work + people

    static func findings(_ facts: DoctorFacts) -> [Finding] {
        all.compactMap { rule in rule.find(facts).map { Finding(rule: rule, figures: $0) } }
    }

    /// The rules that have no finding, but could not read all of their sources.
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
