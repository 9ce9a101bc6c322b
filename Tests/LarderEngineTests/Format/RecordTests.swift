import LarderTestSupport
import Testing

@testable import LarderEngine

/// Tests of the record header: it is read back as it was written, and no bytes on a disk make the parser trap.
@Suite struct RecordTests {
    private func parse(_ bytes: [UInt8]) -> Result<RecordHeader, RecordHeader.Defect> {
        bytes.withUnsafeBytes { bytes in
            Result { () throws(RecordHeader.Defect) in try RecordHeader(parsing: bytes, nil) }
        }
    }

    private func bytes(_ header: RecordHeader) -> [UInt8] {
        var bytes: [UInt8] = []
        header.append(to: &bytes)
        return bytes
    }

    @Test func aRecordIsReadAsWritten() throws {
        let rules: [DeadlineRule] = [.governed, .ownNever, .own(0), .own(1_700_000_000_123), .own(.max)]
        for rule in rules {
            for codec in [Codec.raw, .json, .propertyList, .custom, Codec(rawValue: 77)] {
                for storedAt in [0, 1, 1_700_000_000_000, EngineTime.latestMilliseconds] {
                    let header = RecordHeader(storedAt: storedAt, rule: rule, codec: codec, generation: 0xDEAD_BEEF)
                    let written = bytes(header)
                    #expect(written.count == header.byteCount)
                    #expect(try parse(written).get() == header)
                    #expect(try parse(written + [1, 2, 3]).get() == header)
                    for grace in [0, 1, UpdatePolicy.longestMilliseconds] {
                        var graced = header
                        graced.grace = grace
                        let written = bytes(graced)
                        #expect(written.count == header.byteCount + 8 && graced.byteCount == written.count)
                        #expect(try parse(written).get() == graced)
                        #expect(written[0] == 2)
                    }
                    #expect(written[0] == 1)
                }
            }
        }
    }

    @Test func timesBefore1970AreWrittenAs1970() throws {
        let header = RecordHeader(storedAt: -5, rule: .own(.min))
        #expect(try parse(bytes(header)).get() == RecordHeader(storedAt: 0, rule: .own(0)))
    }

    @Test func incompleteHeadersAreReportedAsTruncated() {
        for rule in [DeadlineRule.governed, .ownNever, .own(1)] {
            for grace: Int64? in [nil, 77] {
                let whole = bytes(RecordHeader(storedAt: 1, rule: rule, grace: grace))
                for count in 0..<whole.count { #expect(parse(Array(whole[..<count])) == .failure(.truncated)) }
            }
        }
    }

    @Test func unknownVersionsAndFlagsAreRefused() {
        var bytes = bytes(RecordHeader(storedAt: 1))
        for version in UInt8.min...UInt8.max where version != 1 && version != 2 {
            bytes[0] = version
            #expect(parse(bytes) == .failure(.newerVersion(version)))
        }
        // Version 2 without grace and tags is invalid: such headers are written as version 1.
        bytes[0] = 2
        for flags in UInt8.min...UInt8.max where flags & 12 == 0 && flags > 2 || flags >= 16 || flags & 3 == 3 {
            bytes[1] = flags
            #expect(parse(bytes) == .failure(.unknownFlags(flags)))
        }
        bytes[0] = 1
        for flags in UInt8(3)...UInt8.max {
            bytes[1] = flags
            #expect(parse(bytes) == .failure(.unknownFlags(flags)))
        }
        bytes[1] = 0
        bytes[3] = 1
        #expect(parse(bytes) == .failure(.unknownFlags(1)))
    }

    @Test func timesOutOfRangeAreClamped() throws {
        var bytes = bytes(RecordHeader(storedAt: 1, rule: .own(1)))
        for index in 8..<24 { bytes[index] = 0xFF }
        #expect(try parse(bytes).get() == RecordHeader(storedAt: 0, rule: .own(0)))
        bytes[8] = 0x7F
        bytes[16] = 0x7F
        let header = try parse(bytes).get()
        #expect(header.storedAt == EngineTime.latestMilliseconds + UpdatePolicy.longestMilliseconds)
        #expect(header.rule == .own(.max))
        let longest = try #require(UpdatePolicy.every(milliseconds: UpdatePolicy.longestMilliseconds))
        for policy in [UpdatePolicy.never, longest, .highest] {
            let rules = FreshnessRules(policy: policy, deadBefore: .max)
            for now in [0, EngineTime.latestMilliseconds] {
                _ = rules.freshness(header, now: now)
                var governed = header
                governed.rule = .governed
                _ = rules.freshness(governed, now: now)
                _ = ExpiryIndex.key(for: Key("k"), header, policy: policy)
                _ = ExpiryIndex.key(for: Key("k"), governed, policy: policy)
            }
        }
    }

    @Test func parsingRandomBytesNeverCrashes() throws {
        var random = SeededGenerator(seed: testSeed())
        for _ in 0..<20_000 {
            var bytes = random.bytes(count: Int.random(in: 0...40, using: &random))
            // Most byte strings have a valid beginning, so that the following bytes are parsed too.
            if bytes.count > 3, !random.oneIn(4) {
                bytes.replaceSubrange(0..<4, with: [1 + bytes[0] % 2, bytes[1] % 8, bytes[2], 0])
            }
            guard case .success(let header) = parse(bytes) else { continue }
            let rules = FreshnessRules(policy: .low, deadBefore: 5)
            _ = rules.freshness(header, now: 1_700_000_000_000)
            _ = ExpiryIndex.key(for: Key(bytes), header, policy: .low)
            let record = try Record(parsing: bytes, nil)
            #expect(record.payloadCount == bytes.count - header.byteCount)
            #expect(record.withPayload { Array($0) } == Array(record.payload))
        }
    }

    @Test func changingADeadlineKeepsTheOtherFields() {
        let header = RecordHeader(storedAt: 7, rule: .own(9), codec: .json, generation: 3)
        let record = Record(header, payload: Array("payload".utf8))
        for rule in [DeadlineRule.governed, .ownNever, .own(77)] {
            let changed = record.with(rule: rule)
            #expect(changed.text == "payload")
            #expect(changed.header == RecordHeader(storedAt: 7, rule: rule, codec: .json, generation: 3))
        }
    }

    @Test func aRecordCanHaveAnEmptyPayload() throws {
        let record = Record(RecordHeader(storedAt: 1), payload: [])
        #expect(record.stored.count == 16)
        #expect(record.payloadCount == 0)
        #expect(record.payload.isEmpty)
        #expect(record.withPayload { $0.count } == 0)
    }

    @Test func codecsAreParsedFromTheirNames() {
        for codec in [Codec.raw, .json, .propertyList, .custom] { #expect(Codec(name: "\(codec)") == codec) }
        #expect(Codec(name: "JSON") == .json)
        #expect(Codec(name: "9") == nil)
        #expect("\(Codec(rawValue: 9))" == "9")
    }
}
