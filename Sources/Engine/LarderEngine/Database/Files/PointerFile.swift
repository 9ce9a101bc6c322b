import LarderPlatform
import LarderVocabulary

/// The small file `<database>/POINTER`: the current epoch (number of the LevelDB) of a database, and its policy.
///
/// It is text, with a name and a value in each line; the last line is the checksum of all previous lines:
/// ```
/// larder-database 1
/// epoch 3
/// policy low
/// dead-before 1700000000000
/// generation 0
/// unindexed 0
/// crc32c 0a1b2c3d
/// ```
/// Higher versions have more lines, and are written only if they are needed:
/// - Version 2 adds two lines: one for an epoch that has taken over another epoch's operations in the journal, and one
///   for an epoch that may have no files yet.
/// - Version 3 adds two lines, for a grace or a jitter.
/// - Version 4 adds one line, for purges of tags.
/// - Version 5 adds one line, for a disk limit.
/// - Version 6 adds one line, for indexes: an earlier Larder would write entries without their hints.
///
/// The file is replaced by rename, so a crash leaves the old file or the new one.
package struct PointerFile: Hashable, Sendable {
    package static let name = "POINTER"
    package static let formatVersion = 6
    package var epoch: UInt64
    package var rules: FreshnessRules
    package var generation: UInt32
    /// Whether governed entries (those that follow the policy) may lack their key in the expiry index. True if the
    /// policy was ever "never", or a day or longer.
    package var isUnindexed: Bool
    /// The first epoch whose operations in the journal are valid; the last one is ``epoch``. Less than ``epoch`` if the
    /// epoch has taken over the operations of an earlier epoch.
    package var journalFrom: UInt64
    /// Whether the epoch's directory may be absent. If it is, the epoch is empty.
    package var isUnmade: Bool
    /// Whether a tag was purged. The ledger must then have the purges.
    package var hasTagPurges: Bool
    /// The limit for the database's files in bytes; 0 if it has no limit of its own.
    package var diskLimit: Int
    /// The indexes, in the order of their creation.
    package var indexes: [DatabaseIndex]

    package init(
        epoch: UInt64, rules: FreshnessRules, generation: UInt32 = 0, isUnindexed: Bool = false,
        journalFrom: UInt64? = nil, isUnmade: Bool = false, hasTagPurges: Bool = false,
        diskLimit: Int = 0, indexes: [DatabaseIndex] = []
    ) {
        self.epoch = epoch
        self.rules = rules
        self.generation = generation
        self.isUnindexed = isUnindexed
        self.journalFrom = journalFrom ?? epoch
        self.isUnmade = isUnmade
        self.hasTagPurges = hasTagPurges
        self.diskLimit = diskLimit
        self.indexes = indexes
    }

    private static let kind = "larder-database"
    private static let names = ["epoch", "policy", "dead-before", "generation", "unindexed"]

    package var text: String {
        var fields: [(String, any CustomStringConvertible)] = [
            ("epoch", epoch), ("policy", rules.policy), ("dead-before", rules.deadBefore), ("generation", generation),
            ("unindexed", isUnindexed ? 1 : 0),
        ]
        // Uses the lowest version that suffices, so that an older Larder can read the file.
        var version = 1
        let hasLimit = diskLimit != 0 || !indexes.isEmpty
        let hasSpans = rules.grace != 0 || rules.jitter != 0 || hasTagPurges || hasLimit
        if journalFrom != epoch || isUnmade || hasSpans {
            version = 2
            fields += [("journal-from", journalFrom), ("unmade", isUnmade ? 1 : 0)]
        }
        if hasSpans {
            version = 3
            fields += [("grace", rules.grace), ("jitter", rules.jitter)]
        }
        if hasTagPurges || hasLimit {
            version = 4
            fields += [("tag-purges", hasTagPurges ? 1 : 0)]
        }
        if hasLimit {
            version = 5
            fields += [("disk-limit", diskLimit)]
        }
        if !indexes.isEmpty {
            version = 6
            fields += [("indexes", indexes.map(\.text).joined(separator: " "))]
        }
        return ChecksummedText.text(Self.kind, version: version, fields)
    }

    package typealias Defect = ChecksummedText.Defect

    package init(parsing bytes: [UInt8]) throws(Defect) {
        let second = Self.names + ["journal-from", "unmade"]
        let third = second + ["grace", "jitter"]
        let fourth = third + ["tag-purges"]
        let fifth = fourth + ["disk-limit"]
        let text = try ChecksummedText(
            parsing: bytes, kind: Self.kind,
            names: [Self.names, second, third, fourth, fifth, fifth + ["indexes"]])
        let values = text.values
        let flags: [Substring: Bool] = ["0": false, "1": true]
        guard let epoch = UInt64(values[0]), let policy = UpdatePolicy(String(values[1])),
            let deadBefore = Int64(values[2]), let generation = UInt32(values[3]), let unindexed = flags[values[4]],
            let journalFrom = text.version == 1 ? epoch : UInt64(values[5]),
            let isUnmade = text.version == 1 ? false : flags[values[6]],
            let hasTagPurges = text.version < 4 ? false : flags[values[9]],
            let diskLimit = text.version < 5 ? 0 : Int(values[10]), diskLimit >= 0,
            let indexes = text.version < 6 ? [] : DatabaseIndex.list(values[11]),
            let grace = text.version < 3 ? 0 : Int64(values[7]), let jitter = text.version < 3 ? 0 : Int(values[8]),
            epoch <= Sequences.epochMax, journalFrom <= epoch, (0...UpdatePolicy.longestMilliseconds).contains(grace),
            (0...Jitter.percentMax).contains(jitter)
        else { throw .malformed("a value is out of range") }
        let latest = EngineTime.latestMilliseconds
        let settings = DatabasePolicy(policy, grace: grace, jitter: jitter)
        self.init(
            epoch: epoch, rules: FreshnessRules(settings, deadBefore: min(max(deadBefore, 0), latest)),
            generation: generation, isUnindexed: unindexed, journalFrom: journalFrom, isUnmade: isUnmade,
            hasTagPurges: hasTagPurges, diskLimit: diskLimit, indexes: indexes)
    }
}

extension DatabaseIndex {
    /// The index in POINTER: its name, its number and its definition, separated by colons. In the definition, bytes
    /// other than printable ASCII, and `%`, are `%` and two hexadecimal digits.
    fileprivate var text: String {
        let digits = Array("0123456789ABCDEF".utf8)
        let bytes = definition.flatMap { byte -> [UInt8] in
            if (0x21...0x7E).contains(byte), byte != 0x25 { return [byte] }
            return [0x25, digits[Int(byte >> 4)], digits[Int(byte & 15)]]
        }
        return "\(name):\(number):" + String(decoding: bytes, as: UTF8.self)
    }

    /// Parses indexes that are separated by spaces.
    fileprivate static func list(_ text: Substring) -> [DatabaseIndex]? {
        var indexes: [DatabaseIndex] = []
        for item in text.split(separator: " ", omittingEmptySubsequences: false) {
            let parts = item.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
            guard parts.count == 3, IndexRules.isValid(name: String(parts[0])), let number = UInt64(parts[1]),
                number <= Sequences.epochMax, let definition = PercentEncoding.decoded(parts[2].utf8)
            else { return nil }
            indexes.append(DatabaseIndex(number: number, name: String(parts[0]), definition: definition))
        }
        return indexes
    }
}
