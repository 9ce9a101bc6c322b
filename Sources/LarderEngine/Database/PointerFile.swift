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

    private static let kind = "larder-database"
    private static let names = ["epoch", "policy", "dead-before", "generation", "unindexed"]

    package var text: String {
        let unindexed = isUnindexed ? 1 : 0
        // What version 1 can say is said so that an older Larder can read it.
        if journalFrom == epoch, !isUnmade {
            return ChecksummedText.text(
                Self.kind, version: 1,
                [
                    "epoch": epoch, "policy": rules.policy, "dead-before": rules.deadBefore, "generation": generation,
                    "unindexed": unindexed,
                ])
        }
        return ChecksummedText.text(
            Self.kind, version: 2,
            [
                "epoch": epoch, "policy": rules.policy, "dead-before": rules.deadBefore, "generation": generation,
                "unindexed": unindexed, "journal-from": journalFrom, "unmade": isUnmade ? 1 : 0,
            ])
    }

    package typealias Defect = ChecksummedText.Defect

    package init(parsing bytes: [UInt8]) throws(Defect) {
        let text = try ChecksummedText(
            parsing: bytes, kind: Self.kind, names: [Self.names, Self.names + ["journal-from", "unmade"]])
        let values = text.values
        let flags: [Substring: Bool] = ["0": false, "1": true]
        guard let epoch = UInt64(values[0]), let policy = UpdatePolicy(String(values[1])),
            let deadBefore = Int64(values[2]), let generation = UInt32(values[3]), let unindexed = flags[values[4]],
            let journalFrom = text.version == 1 ? epoch : UInt64(values[5]),
            let isUnmade = text.version == 1 ? false : flags[values[6]],
            epoch <= Sequences.epochMax, journalFrom <= epoch
        else { throw .malformed("a value is out of its range") }
        let latest = EngineTime.latestMilliseconds
        self.init(
            epoch: epoch, rules: FreshnessRules(policy: policy, deadBefore: min(max(deadBefore, 0), latest)),
            generation: generation, isUnindexed: unindexed, journalFrom: journalFrom, isUnmade: isUnmade)
    }
}
