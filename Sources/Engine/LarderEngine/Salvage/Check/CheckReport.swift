/// A problem with a larder's files.
package struct CheckProblem: Hashable, Sendable {
    package enum Kind: String, Sendable {
        /// Damage that ``Engine/repair(_:options:time:)`` handles.
        case damage
        /// A problem that only an operator can fix.
        case manual
        /// Files that could not be checked: the system denies access, or a newer version wrote them.
        case unseen
    }

    package let kind: Kind
    /// The place of the problem: a file of the larder, or `database 'name'`.
    package let place: String
    package let what: String
    /// How to fix it.
    package let remedy: String

    static func place(ofDatabase name: String) -> String {
        name == DatabaseName.ledger ? "the ledger" : "database '\(name)'"
    }

    /// The problem in one line.
    package var text: String { "\(place): \(what); \(remedy)" }
}

/// The result of a check of a larder's files.
package struct CheckReport: Sendable {
    package internal(set) var problems: [CheckProblem] = []
    /// Observations that are not problems, such as files that are not Larder's.
    package internal(set) var notes: [String] = []
    package internal(set) var databases = 0
    /// The number of entries in LevelDB, including expired ones.
    package internal(set) var entries = 0
    /// The number of valid operations in the journal.
    package internal(set) var operations = 0
    /// The databases whose LevelDB is damaged, each as its ``CheckProblem/place``.
    var damaged: Set<String> = []
    /// The databases whose expiry index lacks keys, each as its ``CheckProblem/place``.
    var unindexed: Set<String> = []
    /// The databases whose indexes lack hints, each as its ``CheckProblem/place``.
    var unhinted: Set<String> = []

    /// The maximum number of damaged parts of one database that are listed. Further ones are only counted.
    static let linesMax = 20

    package var isRepairable: Bool { problems.contains { $0.kind == .damage } }

    /// Whether there are problems, and all of them are files that could not be checked.
    package var isBlind: Bool { !problems.isEmpty && problems.allSatisfy { $0.kind == .unseen } }

    mutating func add(_ kind: CheckProblem.Kind, _ place: String, _ what: String, _ remedy: String) {
        problems.append(CheckProblem(kind: kind, place: place, what: what, remedy: remedy))
    }

    /// Adds a file that could not be read.
    package mutating func addUnseen(_ place: String, _ error: any Error) {
        add(.unseen, place, "it could not be read: \(error)", "fix that, and check again")
    }

    mutating func addNewer(_ place: String, _ version: some BinaryInteger, reads: some BinaryInteger) {
        add(
            .unseen, place, "a newer Larder wrote it (version \(version), this one reads \(reads))",
            "check it with that Larder")
    }

    /// Adds a damaged file that belongs to another module, so that the engine cannot repair it.
    package mutating func addDamage(_ place: String, _ what: String, _ remedy: String) {
        add(.manual, place, what, remedy)
    }
}
