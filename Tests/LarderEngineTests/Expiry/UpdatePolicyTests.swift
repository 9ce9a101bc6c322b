import LarderTestSupport
import Testing

@testable import LarderEngine

@Suite struct UpdatePolicyTests {
    @Test func policiesAreParsedFromTheirNames() {
        let table: [(String, UpdatePolicy, Int64?)] = [
            ("highest", .highest, 10_000), ("high", .high, 60_000), ("middle", .middle, 3_600_000),
            ("low", .low, 86_400_000), ("lowest", .lowest, 604_800_000), ("never", .never, nil),
        ]
        for (name, policy, interval) in table {
            #expect(policy.intervalMilliseconds == interval)
            #expect("\(policy)" == name)
            #expect(UpdatePolicy(name) == policy)
            #expect(UpdatePolicy(name.uppercased()) == policy)
        }
    }

    @Test func policiesAreParsedFromSeconds() {
        let good: [(String, Int64, String)] = [
            ("90", 90_000, "every:90"), ("0.5", 500, "every:0.500"), ("every:90", 90_000, "every:90"),
            ("60", 60_000, "high"),
            ("0.001", 1, "every:0.001"), ("9000000000", 9_000_000_000_000, "every:9000000000"),
            ("007", 7000, "every:7"),
            (".5", 500, "every:0.500"), ("EVERY:1.25", 1250, "every:1.250"),
        ]
        for (text, interval, description) in good {
            let policy = UpdatePolicy(text)
            #expect(policy?.intervalMilliseconds == interval, "\(text)")
            #expect(policy?.description == description, "\(text)")
        }
        let bad = [
            "", " ", "0", "-1", "+1", "1e3", "inf", "nan", "0x10", "1.2.3", ".", "every:", "every:high", "90 ", " 90",
            "9000000001", "0.0001", "high ", "１", "99999999999999999999999999999", "every:every:9",
        ]
        for text in bad { #expect(UpdatePolicy(text) == nil, "\(text)") }
    }

    @Test func policiesCanBeCreatedFromSecondsMinutesHoursAndDays() {
        #expect(UpdatePolicy.seconds(90).intervalMilliseconds == 90_000)
        #expect(UpdatePolicy.seconds(10) == .highest && UpdatePolicy.minutes(1) == .high)
        #expect(UpdatePolicy.hours(1) == .middle && UpdatePolicy.hours(24) == .low && UpdatePolicy.days(7) == .lowest)
        #expect(UpdatePolicy.hours(0.5).intervalMilliseconds == 1_800_000)
        for count in [0, -1, 0.0006 / 86_400, .nan, 1e12, .infinity] {
            #expect(throws: EntryPolicy.Impossible.self, "\(count)") { try UpdatePolicy.days(count).checked() }
        }
        #expect(throws: Never.self) { try UpdatePolicy.never.checked() }
    }

    @Test func aPolicysDescriptionIsParsedBack() {
        var random = SeededGenerator(seed: testSeed())
        for _ in 0..<5000 {
            let interval = Int64.random(
                in: 1...UpdatePolicy.longestMilliseconds >> Int64.random(in: 0...42, using: &random), using: &random)
            guard let policy = UpdatePolicy.every(milliseconds: interval) else {
                Issue.record("\(interval) was refused")
                continue
            }
            #expect(UpdatePolicy("\(policy)") == policy)
        }
    }

    @Test func intervalsOutOfRangeAreRefused() {
        for seconds in [0, -1, 0.0009, .infinity, .nan, 9_000_000_001, .greatestFiniteMagnitude] {
            #expect(UpdatePolicy.every(seconds) == nil)
        }
        #expect(UpdatePolicy.every(0.0014)?.intervalMilliseconds == 1)
        #expect(UpdatePolicy.every(milliseconds: 0) == nil)
        #expect(UpdatePolicy.every(milliseconds: UpdatePolicy.longestMilliseconds + 1) == nil)
        #expect(UpdatePolicy.every(60) == .high)
    }

    @Test("database names are validated") func namesOfDatabases() {
        let good = [
            "0", "15", "9", "a", "_", "books", "a.b-c_d", "0a", "00a", "16x", String(repeating: "a", count: 64), "1.5",
        ]
        for name in good { #expect(DatabaseName.isValid(name), "\(name)") }
        let bad = [
            "", "16", "00", "01", "007", "100", "99999999999999999999", ".a", "-a", "A", "bOoks", "a/b", "a b", "ä",
            "..",
            ".creating-x", "a\0", String(repeating: "a", count: 65), "LOCK", "DAMAGED",
        ]
        for name in bad { #expect(!DatabaseName.isValid(name), "\(name)") }
        #expect(errorCode { try DatabaseName.check("A", operation: "open") } == .invalidArgument)
    }
}
