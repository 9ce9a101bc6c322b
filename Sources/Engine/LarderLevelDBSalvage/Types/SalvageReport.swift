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
    /// The number of unreadable bytes, as far as known; 0 for missing files.
    package let byteCount: Int
    package let reason: String
    /// The keys whose newest state may have been in this part; nil if no entry is lost.
    package let range: KeyRange?
}

extension SalvageDamage: CustomStringConvertible {
    package var description: String {
        "\(file): \(part.rawValue) at \(offset), \(byteCount) bytes: \(reason): "
            + (range.map { "lost: \($0)" } ?? "nothing is lost")
    }
}

/// The result of a salvage: the numbers of returned entries, and the damage. It is complete after
/// ``SalvageReader/next()`` has returned false.
package struct SalvageReport: Sendable {
    /// The number of keys that were returned with a value.
    package internal(set) var entries = 0
    /// The number of keys in lost ranges that were certainly removed.
    package internal(set) var removals = 0
    /// The number of keys that were found but not returned, because a newer state may be lost. They are in ``lost``.
    package internal(set) var withheld = 0
    /// The ranges of keys whose newest state may be lost: ascending and disjoint. If a key in such a range was
    /// returned, its value is the newest one.
    package internal(set) var lost: [KeyRange] = []
    /// The first ``damagesMax`` damaged parts, in the order of detection.
    package internal(set) var damages: [SalvageDamage] = []
    package internal(set) var damageCount = 0
    /// The number of lost bytes, as far as known.
    package internal(set) var bytesLost = 0
    /// Whether it is certain which files are current. If false, outdated values may have been returned, because a
    /// missing file may not be detected. Removed keys may have been returned too, unless
    /// ``SalvageOptions/unknownIsLost`` is true. ``notes`` contains the reason.
    package internal(set) var isComplete = true
    /// Messages about facts that are not damage, such as which manifest was used, or which log ends within a record.
    package internal(set) var notes: [String] = []

    package static let damagesMax = 10_000

    /// Whether everything ever stored was returned.
    package var isUndamaged: Bool { damageCount == 0 && lost.isEmpty && isComplete }

    mutating func add(_ damage: SalvageDamage) {
        damageCount += 1
        // The sum may overflow, because a damaged manifest may contain any length.
        bytesLost = bytesLost.addingReportingOverflow(max(0, damage.byteCount)).partialValue
        if bytesLost < 0 { bytesLost = Int.max }
        if damages.count < Self.damagesMax { damages.append(damage) }
    }
}
