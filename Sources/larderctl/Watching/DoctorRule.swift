/// What `larderctl doctor` knows of a daemon. A value.
struct DoctorFacts {
    struct Database {
        let name: String
        let state: String
    }

    var info = InfoFigures("")
    /// Settings, by their names in CONFIG.
    var settings: [String: String] = [:]
    var databases: [Database] = []
    /// The fields of CLIENT LIST, one dictionary a connection.
    var clients: [[String: String]] = []
    /// When the slow commands of programs ran that the slow log has, in seconds since 1970.
    var slowTimes: [Int64] = []
    /// Of the larder's file system, in bytes; nil if this machine does not tell.
    var disk: (free: Int, total: Int)?
    /// Whether every user of the machine may connect to the socket; nil if that cannot be told.
    var isSocketOpenToAll: Bool?
    /// Why an origin is away, by the names of their databases.
    var originErrors: [String: String] = [:]
    /// What could not be looked at, and why.
    var unseen: [Source: String] = [:]

    /// What not everybody may look at.
    enum Source {
        case databases, settings, clients, slowLog, disk
    }

    var reads: Int64 { info.number("keyspace_hits") + info.number("keyspace_misses") }
    /// Whether less than 5 % of the larder's file system are free.
    var isDiskFull: Bool { disk.map { $0.total > 0 && $0.free < $0.total / 20 } ?? false }
    /// All commands that were answered: those that ran, and those that were refused before.
    var answered: Int64 {
        info.commands.values.reduce(info.number("total_commands_processed")) { $0 + min(max(0, $1.rejected), 1 << 40) }
    }
    /// The daemon's time in seconds since 1970.
    var now: Int64 { info.number("server_time_usec") / 1_000_000 }
}

/// One thing that `larderctl doctor` looks for.
struct DoctorRule: Sendable {
    enum Weight: String, Sendable {
        /// Something is lost, or will be.
        case problem
        /// Something costs more than it must.
        case advice
    }

    let name: String
    let weight: Weight
    /// When it speaks, with the thresholds.
    let condition: String
    /// What to do.
    let remedy: String
    /// What it looks at beside INFO.
    var needs: DoctorFacts.Source?
    /// The figures; nil if there is nothing to say.
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

    /// A rule that could not look, and why.
    struct Omission {
        let rule: DoctorRule
        let reason: String

        var text: String { "\(rule.name): not looked at: \(reason)" }

        var json: JSONText { .object([("rule", .text(rule.name)), ("reason", .text(reason))]) }
    }

    static let all: [DoctorRule] = damage + disk + work + people

    static func findings(_ facts: DoctorFacts) -> [Finding] {
        all.compactMap { rule in rule.find(facts).map { Finding(rule: rule, figures: $0) } }
    }

    /// The rules that have found nothing, and could not look at everything that they need.
    static func omissions(_ facts: DoctorFacts) -> [Omission] {
        all.compactMap { rule in
            guard let reason = rule.needs.flatMap({ facts.unseen[$0] }), rule.find(facts) == nil else { return nil }
            return Omission(rule: rule, reason: reason)
        }
    }

    /// The rules as a table of Markdown, for the docs.
    static var table: String {
        "| finding | when | what to do |\n|---|---|---|\n"
            + all.map { "| `\($0.name)` (\($0.weight.rawValue)) | \($0.condition) | \($0.remedy) |\n" }.joined()
    }
}
