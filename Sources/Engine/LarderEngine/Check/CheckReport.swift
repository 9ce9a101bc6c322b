/// One thing that is wrong with a larder's files.
package struct CheckProblem: Hashable, Sendable {
    package enum Kind: String, Sendable {
        /// Damage that ``Engine/repair(_:options:time:)`` handles.
        case damage
        /// Something that only people can put right.
        case manual
        /// Files that could not be looked at: the system refuses, or a newer version wrote them.
        case unseen
    }

    package let kind: Kind
    /// What it is about: a file of the larder, or `database 'name'`.
    package let place: String
    package let what: String
    /// What to do.
    package let remedy: String

    /// In one line.
    package var text: String { "\(place): \(what); \(remedy)" }
}

/// What a check of a larder's files has found.
package struct CheckReport: Sendable {
    package internal(set) var problems: [CheckProblem] = []
    /// What is not wrong, but may be news, such as files that are not Larder's.
    package internal(set) var notes: [String] = []
    package internal(set) var databases = 0
    /// The records in LevelDB, the expired ones among them.
    package internal(set) var entries = 0
    /// The operations in the journal that count.
    package internal(set) var operations = 0
    /// The databases, by their places, whose LevelDB is damaged.
    var damaged: Set<String> = []
    /// The databases, by their places, whose expiry index lacks keys.
    var unindexed: Set<String> = []

    /// At most so many lines of one kind about one database.
    static let linesMax = 20

    package var isRepairable: Bool { problems.contains { $0.kind == .damage } }

    /// Whether nothing was found to be wrong, but not everything could be looked at.
    package var isBlind: Bool { !problems.isEmpty && problems.allSatisfy { $0.kind == .unseen } }

    mutating func add(_ kind: CheckProblem.Kind, _ place: String, _ what: String, _ remedy: String) {
        problems.append(CheckProblem(kind: kind, place: place, what: what, remedy: remedy))
    }

    /// For a file that the system does not let be read.
    package mutating func addUnseen(_ place: String, _ error: any Error) {
        add(.unseen, place, "it could not be looked at: \(error)", "see to that, and check again")
    }

    mutating func addNewer(_ place: String, _ version: some BinaryInteger, reads: some BinaryInteger) {
        add(
            .unseen, place, "a newer Larder wrote it (version \(version), this one reads \(reads))",
            "check it with that Larder")
    }

    /// For a damaged file that is not the engine's.
    package mutating func addDamage(_ place: String, _ what: String, _ remedy: String) {
        add(.manual, place, what, remedy)
    }
}

/// How far a check has come.
package struct CheckProgress: Sendable {
    package let doneBytes: Int
    package let totalBytes: Int

    package init(doneBytes: Int, totalBytes: Int) { (self.doneBytes, self.totalBytes) = (doneBytes, totalBytes) }
}
