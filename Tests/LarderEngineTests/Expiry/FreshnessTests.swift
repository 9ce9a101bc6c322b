import LarderTestSupport
import Testing

@testable import LarderEngine

@Suite struct FreshnessTests {
    private let stored: Int64 = 1_700_000_000_000

    @Test func anEntryExpiresExactlyAtItsDeadline() throws {
        let rules = FreshnessRules(policy: .highest)
        let cases: [(DeadlineRule, Int64?)] = [
            (.governed, stored + 10_000), (.own(stored + 77), stored + 77), (.own(stored - 5), stored - 5),
            (.ownNever, nil),
        ]
        for (rule, deadline) in cases {
            let header = RecordHeader(storedAt: stored, rule: rule)
            #expect(rules.deadline(header) == deadline)
            guard let deadline else {
                #expect(rules.freshness(header, now: EngineTime.latestMilliseconds) == .fresh)
                continue
            }
            #expect(rules.freshness(header, now: deadline - 1) == .fresh)
            #expect(rules.freshness(header, now: deadline) == .gone)
            #expect(rules.freshness(header, now: deadline + 1) == .gone)
        }
        let governed = RecordHeader(storedAt: stored)
        #expect(FreshnessRules(policy: .never).deadline(governed) == nil)
        let one = try #require(UpdatePolicy.every(milliseconds: 1))
        #expect(FreshnessRules(policy: one).freshness(governed, now: stored) == .fresh)
        #expect(FreshnessRules(policy: one).freshness(governed, now: stored + 1) == .gone)
    }

    /// An entry with a timestamp in the future is not hidden: the same rules apply to it as to all other entries.
    @Test func entriesWithATimestampInTheFutureAreNotHidden() {
        let rules = FreshnessRules(policy: .highest)
        for ahead in [1, 60_001, 315_360_000_000 as Int64] {
            for (rule, expected) in [
                (DeadlineRule.governed, Freshness.fresh), (.ownNever, .fresh), (.own(stored + 5), .fresh),
                (.own(stored - ahead), .gone),
            ] {
                #expect(rules.freshness(RecordHeader(storedAt: stored, rule: rule), now: stored - ahead) == expected)
            }
        }
    }

    @Test func deadBeforeExpiresOnlyEntriesThatFollowThePolicy() {
        let rules = FreshnessRules(policy: .never, deadBefore: stored)
        for (storedAt, expected) in [(stored - 1, Freshness.gone), (stored, .gone), (stored + 1, .fresh)] {
            #expect(rules.freshness(RecordHeader(storedAt: storedAt), now: stored + 2) == expected)
            #expect(rules.freshness(RecordHeader(storedAt: storedAt, rule: .ownNever), now: stored + 2) == .fresh)
        }
    }

    /// However often the policy changes, an entry that was once expired is never fresh again.
    @Test func aPolicyChangeNeverRevivesExpiredEntries() throws {
        var random = SeededGenerator(seed: testSeed())
        let short = try #require(UpdatePolicy.every(milliseconds: 3))
        let policies: [UpdatePolicy] = [.highest, .high, .middle, .never, short]
        for _ in 0..<300 {
            var now = stored
            var rules = FreshnessRules(policy: policies.randomElement(using: &random) ?? .low)
            var headers: [RecordHeader] = []
            var dead: Set<Int> = []
            for _ in 0..<60 {
                switch Int.random(in: 0..<3, using: &random) {
                case 0: headers.append(RecordHeader(storedAt: now, generation: UInt32(headers.count)))
                case 1: now += Int64.random(in: 0...(random.oneIn(2) ? 20 : 100_000), using: &random)
                default:
                    rules = rules.changed(to: DatabasePolicy(policies.randomElement(using: &random) ?? .low), now: now)
                }
                for (index, header) in headers.enumerated() {
                    let isExpired = rules.freshness(header, now: now) == .gone
                    #expect(isExpired || !dead.contains(index))
                    if isExpired { dead.insert(index) }
                }
            }
        }
    }

    @Test func aLongerPolicyKeepsFreshEntries() {
        let rules = FreshnessRules(policy: .highest).changed(to: DatabasePolicy(.low), now: stored)
        #expect(rules.freshness(RecordHeader(storedAt: stored - 9999), now: stored) == .fresh)
        #expect(rules.freshness(RecordHeader(storedAt: stored - 10_000), now: stored) == .gone)
        #expect(rules.freshness(RecordHeader(storedAt: stored - 9999), now: stored + 86_390_000) == .fresh)
        let again = rules.changed(to: DatabasePolicy(.never), now: stored + 5)
        #expect(again.deadBefore == stored - 10_000)
    }
}
