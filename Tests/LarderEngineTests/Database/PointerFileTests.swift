import LarderTestSupport
import Testing

@testable import LarderEngine

@Suite struct PointerFileTests {
    private func parse(_ text: String) -> Result<PointerFile, PointerFile.Defect> {
        Result { () throws(PointerFile.Defect) in try PointerFile(parsing: Array(text.utf8)) }
    }

    /// Returns the text of a file with these lines and a correct checksum.
    private func file(_ lines: [String]) -> String {
        let body = lines.map { $0 + "\n" }.joined()
        let sum = String(CRC32C.checksum(body.utf8), radix: 16)
        return body + "crc32c " + String(repeating: "0", count: 8 - sum.count) + sum + "\n"
    }

    private let good = [
        "larder-database 1", "epoch 3", "policy low", "dead-before 7", "generation 0", "unindexed 0",
    ]

    private func isMalformed(_ text: String) -> Bool {
        if case .failure(.malformed) = parse(text) { return true }
        return false
    }

    @Test func aPointerFileIsReadAsWritten() throws {
        for policy in [UpdatePolicy.never, .lowest, try #require(.every(0.25))] {
            for isUnindexed in [false, true] {
                let pointer = PointerFile(
                    epoch: 1_700_000_000_000, rules: FreshnessRules(policy: policy, deadBefore: 1_699_999_999_999),
                    generation: .max, isUnindexed: isUnindexed)
                #expect(try parse(pointer.text).get() == pointer)
                var other = pointer
                other.isUnmade = isUnindexed
                other.journalFrom -= isUnindexed ? 0 : 5
                #expect(try parse(other.text).get() == other)
                #expect(other.text.hasPrefix("larder-database 2\n"))
                other.rules.grace = 3_600_000
                other.rules.jitter = isUnindexed ? 0 : 100
                #expect(try parse(other.text).get() == other)
                #expect(other.text.hasPrefix("larder-database 3\n"))
                other.hasTagPurges = true
                #expect(try parse(other.text).get() == other)
                #expect(other.text.hasPrefix("larder-database 4\n"))
                other.diskLimit = isUnindexed ? 0 : 1 << 30
                other.indexes = [
                    DatabaseIndex(number: 7, name: "by.Author-1", definition: Array("ON author:x".utf8)),
                    DatabaseIndex(number: 1 << 62, name: "b", definition: Array(UInt8.min ... .max)),
                    DatabaseIndex(number: 8, name: "c", definition: []),
                ]
                #expect(try parse(other.text).get() == other)
                #expect(other.text.hasPrefix("larder-database 6\n"))
            }
        }
        #expect(
            try parse(file(good)).get()
                == PointerFile(epoch: 3, rules: FreshnessRules(policy: .low, deadBefore: 7)))
    }

    private let second = ["journal-from 2", "unmade 1"]
    private let third = ["grace 5000", "jitter 10"]

    private func good(_ version: Int) -> [String] {
        switch version {
        case 1: good
        case 2: ["larder-database 2"] + good.dropFirst() + second
        case 3: ["larder-database 3"] + good.dropFirst() + second + third
        case 4: ["larder-database 4"] + good.dropFirst() + second + third + ["tag-purges 1"]
        default:
            ["larder-database 6"] + good.dropFirst() + second + third
                + ["tag-purges 0", "disk-limit 0", "indexes a:7:ON%20b c:8:%FF"]
        }
    }

    @Test(arguments: [1, 2, 3, 4, 6]) func anyDamageOfAPointerFileIsDetected(version: Int) {
        let lines = good(version)
        let text = Array(file(lines).utf8)
        for count in 0..<text.count { #expect(isMalformed(String(decoding: text[..<count], as: UTF8.self))) }
        for index in text.indices {
            for bit in 0..<8 {
                var flipped = text
                flipped[index] ^= 1 << UInt8(bit)
                let result = Result { () throws(PointerFile.Defect) in try PointerFile(parsing: flipped) }
                // A flipped bit of the version makes it a newer version, which is refused as well.
                if case .success = result { Issue.record("bit \(bit) of byte \(index) went unnoticed") }
            }
        }
        #expect(isMalformed(file(good) + "x"))
        #expect(isMalformed(file(good) + "\n"))
        if case .success = (Result { () throws(PointerFile.Defect) in try PointerFile(parsing: [0xFF, 0xFE]) }) {
            Issue.record("bytes that are no text were read")
        }
    }

    @Test func valuesOutOfRangeAreRefused() {
        let bad = [
            (1, "epoch -1"), (1, "epoch x"), (1, "epoch"), (1, "epoch 18446744073709551615"),
            (1, "epoch 4611686018427387905"),
            (1, "epoch 99999999999999999999"), (1, "time 3"), (2, "policy sometimes"), (2, "policy 0"),
            (3, "dead-before"),
            (3, "dead-before 9223372036854775808"), (4, "generation 4294967296"), (4, "generation -1"),
            (5, "unindexed 2"),
            (5, "unindexed"), (0, "larder-database"), (0, "larder-database x"), (0, "larder-database 0"),
            (0, "larder-database -7"), (0, "other-database 1"),
        ]
        for (index, line) in bad {
            var lines = good
            lines[index] = line
            #expect(isMalformed(file(lines)), "\(line)")
        }
        for (index, line) in [(8, "grace -1"), (8, "grace 9000000000001"), (9, "jitter 101"), (9, "jitter -1")] {
            var lines = good(3)
            lines[index] = line
            #expect(isMalformed(file(lines)), "\(line)")
        }
        #expect(isMalformed(file(good(4).dropLast() + ["tag-purges 2"])))
        var lines = good
        lines.remove(at: 4)
        #expect(isMalformed(file(lines)))
    }

    @Test func timesOutOfRangeAreClamped() throws {
        var lines = good
        lines[3] = "dead-before -9223372036854775808"
        #expect(try parse(file(lines)).get().rules.deadBefore == 0)
        lines[3] = "dead-before 9223372036854775807"
        #expect(try parse(file(lines)).get().rules.deadBefore == EngineTime.latestMilliseconds)
    }

    @Test func aPointerFileInANewerFormatIsRefused() {
        let next = "larder-database \(PointerFile.formatVersion + 1)"
        for text in [next + "\n", "larder-database 99\nanything\n", file([next, "epoch x"])] {
            guard case .failure(.newerFormat) = parse(text) else {
                Issue.record("\(text) is not refused as newer")
                continue
            }
        }
    }

    @Test func parsingADamagedPointerFileNeverCrashes() {
        var random = SeededGenerator(seed: testSeed())
        let text = Array(file(good).utf8)
        for _ in 0..<5000 {
            var bytes = text
            for _ in 0..<Int.random(in: 1...6, using: &random) {
                let index = Int.random(in: bytes.indices, using: &random)
                switch Int.random(in: 0..<3, using: &random) {
                case 0: bytes[index] = UInt8.random(in: 0...255, using: &random)
                case 1: bytes.insert(UInt8.random(in: 0...255, using: &random), at: index)
                default: bytes.remove(at: index)
                }
            }
            _ = Result { () throws(PointerFile.Defect) in try PointerFile(parsing: bytes) }
        }
    }
}
