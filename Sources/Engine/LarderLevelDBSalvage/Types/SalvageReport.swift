/// One part of a file that cannot be read.
package struct SalvageDamage: Hashable, Sendable {
    package enum Part: String, Hashable, Sendable {
        case dataBlock = "data block"
        case index = "index"
        case footer = "footer"
        case filter = "filter"
        case table = "table"
        case logRecord = "record"
        case log = "log"
        case manifest = "manifest"
        case current = "CURRENT"
    }

    package let part: Part
    /// The file's name, without the directory.
    package let file: String
    package let offset: Int
    /// As far as known; 0 for missing files.
    package let byteCount: Int
    package let reason: String
    /// The keys whose newest state may have been there. nil: nothing is lost by it.
    package let range: KeyRange?
}

extension SalvageDamage: CustomStringConvertible {
    package var description: String {
        "\(file): \(part.rawValue) at \(offset), \(byteCount) bytes: \(reason): "
            + (range.map { "lost: \($0)" } ?? "nothing is lost")
    }
}

/// The numbers of entries returned, and the damage. Complete when ``SalvageReader/next()`` has returned false.
package struct SalvageReport: Sendable {
    /// Keys that were returned with a value.
    package internal(set) var entries = 0
    /// Keys in lost ranges that were proven to be removed.
    package internal(set) var removals = 0
    /// Keys that were found and not returned, because a newer state may be lost. They are in ``lost``.
    package internal(set) var withheld = 0
    /// The ranges in which the newest state may be lost: ascending and disjoint. A returned key in them is still
    /// correct.
    package internal(set) var lost: [KeyRange] = []
    /// In the order of detection; the first ``damagesMax``.
    package internal(set) var damages: [SalvageDamage] = []
    /// All of them.
    package internal(set) var damageCount = 0
    /// Lost bytes of files, as far as known.
    package internal(set) var bytesLost = 0
    /// False if the current files are uncertain. Then, unless ``SalvageOptions/unknownIsLost``, removed keys may have
    /// come back. Files may also be missing undetected, so older values may have been taken for the newest; ``notes``
    /// has the reason.
    package internal(set) var isComplete = true
    /// Facts that are not damage: which manifest was used, which log ends within a record.
    package internal(set) var notes: [String] = []

    package static let damagesMax = 10_000

    /// Whether everything ever stored was returned.
    package var isUndamaged: Bool { damageCount == 0 && lost.isEmpty && isComplete }

    mutating func add(_ damage: SalvageDamage) {
        damageCount += 1
        // A manifest may claim any length.
        bytesLost = bytesLost.addingReportingOverflow(max(0, damage.byteCount)).partialValue
        if bytesLost < 0 { bytesLost = Int.max }
        if damages.count < Self.damagesMax { damages.append(damage) }
    }
}
