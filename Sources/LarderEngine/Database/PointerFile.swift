/// The small file `<database>/POINTER` that says which epoch of a database is the current one, and its policy.
///
/// It is text, one `name value` a line, the last line the checksum of all before it:
/// ```
/// larder-database 1
/// epoch 3
/// policy low
/// dead-before 1700000000000
/// generation 0
/// unindexed 0
/// crc32c 0a1b2c3d
/// ```
/// Where an epoch has taken over what another one had in the journal, or its files need not be there yet, that takes two lines
/// more, and version 2. It is replaced by rename, so that a crash leaves the old one or the new one.
package struct PointerFile: Hashable, Sendable {
    package static let name = "POINTER"
    package static let formatVersion = 2
    package var epoch: UInt64
    package var rules: FreshnessRules
    package var generation: UInt32
    /// Whether governed entries may lack their key in the expiry index, because the policy was "never" for a time.
    package var isUnindexed: Bool
    /// Operations of the journal count that name an epoch from this one to the current one. Less than ``epoch`` where that
    /// has taken over what an earlier one had.
    package var journalFrom: UInt64
    /// Whether the epoch's directory need not be there: without it the epoch is empty.
    package var isUnmade: Bool

    package init(
        epoch: UInt64, rules: FreshnessRules, generation: UInt32 = 0, isUnindexed: Bool = false,
        journalFrom: UInt64? = nil, isUnmade: Bool = false
    ) {
        self.epoch = epoch
        self.rules = rules
        self.generation = generation
        self.isUnindexed = isUnindexed
        self.journalFrom = journalFrom ?? epoch
        self.isUnmade = isUnmade
    }

    package var text: String {
        // What version 1 can say is said so that an older Larder can read it.
        let isPlain = journalFrom == epoch && !isUnmade
        var body = """
            larder-database \(isPlain ? 1 : 2)
            epoch \(epoch)
            policy \(rules.policy)
            dead-before \(rules.deadBefore)
            generation \(generation)
            unindexed \(isUnindexed ? 1 : 0)

            """
        if !isPlain { body += "journal-from \(journalFrom)\nunmade \(isUnmade ? 1 : 0)\n" }
        return body + CRC32C.line(of: body)
    }

    package enum Defect: Error, Equatable {
        case newerFormat(Int)
        case malformed(String)
    }

    package init(parsing bytes: [UInt8]) throws(Defect) {
        guard let text = String(validating: bytes, as: UTF8.self) else { throw .malformed("it is not text") }
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        let fields = lines.map { $0.split(separator: " ", maxSplits: 1) }
        guard let first = fields.first, first.count == 2, first[0] == "larder-database", let version = Int(first[1])
        else { throw .malformed("the first line is not 'larder-database' and a version") }
        guard version >= 1 else { throw .malformed("there is no version \(version)") }
        // A newer layout may have other lines: nothing else of it is read.
        guard version <= Self.formatVersion else { throw .newerFormat(version) }
        let count = version == 1 ? 6 : 8
        guard lines.count == count + 2, lines[count + 1].isEmpty else {
            throw .malformed("it has not \(version == 1 ? "seven" : "nine") lines")
        }
        let body = lines[0..<count].map { $0 + "\n" }.joined()
        guard lines[count] + "\n" == CRC32C.line(of: body) else {
            throw .malformed("the checksum does not match")
        }
        func value(_ index: Int, _ name: String) throws(Defect) -> Substring {
            guard fields[index].count == 2, fields[index][0] == name else { throw .malformed("'\(name)' is missing") }
            return fields[index][1]
        }
        guard let epoch = UInt64(try value(1, "epoch")), let policy = UpdatePolicy(String(try value(2, "policy"))),
            let deadBefore = Int64(try value(3, "dead-before")), let generation = UInt32(try value(4, "generation")),
            let unindexed = ["0": false, "1": true][try value(5, "unindexed")]
        else { throw .malformed("a value is out of its range") }
        var journalFrom = epoch
        var isUnmade = false
        if version > 1 {
            guard let from = UInt64(try value(6, "journal-from")),
                let unmade = ["0": false, "1": true][try value(7, "unmade")]
            else { throw .malformed("a value is out of its range") }
            (journalFrom, isUnmade) = (from, unmade)
        }
        guard epoch <= Sequences.epochMax, journalFrom <= epoch else { throw .malformed("a value is out of its range") }
        let latest = EngineTime.latestMilliseconds
        self.init(
            epoch: epoch, rules: FreshnessRules(policy: policy, deadBefore: min(max(deadBefore, 0), latest)),
            generation: generation, isUnindexed: unindexed, journalFrom: journalFrom, isUnmade: isUnmade)
    }
}
