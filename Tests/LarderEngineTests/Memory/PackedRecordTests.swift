import LarderTestSupport
import Testing

@testable import LarderEngine

/// Records are contained in memory in a shorter form. Whatever they are, they are read as if they were stored.
@Suite struct PackedRecordTests {
    /// Writes a record to memory, and compares what is read there with the record.
    /// - Returns: the number of bytes in memory.
    @discardableResult
    private func check(
        _ stored: [UInt8], storedFrom bytesMin: Int = .max, _ purges: TagPurges? = nil,
        sourceLocation: SourceLocation = #_sourceLocation
    ) -> Int {
        stored.withUnsafeBytes { stored in
            let packed = PackedRecord(stored: stored, storedFrom: bytesMin)
            let count = check(packed, Array(stored), purges, sourceLocation)
            // The same record in parts. Reading clamps times, so only records that are read as they are can be equal.
            guard let view = try? RecordView(parsing: stored, nil), Array(Record(view).stored) == Array(stored) else {
                return count
            }
            let other = PackedRecord(view, storedFrom: bytesMin)
            #expect(check(other, Array(stored), purges, sourceLocation) == count, sourceLocation: sourceLocation)
            return count
        }
    }

    private func check(
        _ packed: PackedRecord, _ stored: [UInt8], _ purges: TagPurges?, _ sourceLocation: SourceLocation
    ) -> Int {
        let (count, guarded) = (packed.byteCount, 16)
        var memory = [UInt8](repeating: 0xA5, count: guarded + count + guarded)
        memory.withUnsafeMutableBytes { packed.write(to: $0.baseAddress! + guarded) }
        let isWithinBounds = (memory.prefix(guarded) + memory.suffix(guarded)).allSatisfy { $0 == 0xA5 }
        #expect(isWithinBounds, sourceLocation: sourceLocation)
        memory.withUnsafeBytes { memory in
            let bytes = UnsafeRawBufferPointer(rebasing: memory[guarded..<(guarded + count)])
            var read: [UInt8] = []
            PackedRecord.appendStored(bytes, to: &read)
            #expect(read == stored, sourceLocation: sourceLocation)
            let found = Result { () throws(RecordHeader.Defect) in try PackedRecord.read(bytes, purges) }
            let expected = stored.withUnsafeBytes { stored in
                Result { () throws(RecordHeader.Defect) in
                    let view = try RecordView(parsing: stored, purges)
                    return (view.header, Array(view.tail), Array(view.payload), view.byteCount)
                }
            }
            switch (found, expected) {
            case (.success(let view), .success(let expected)):
                #expect(view.header == expected.0, sourceLocation: sourceLocation)
                #expect(Array(view.tail) == expected.1, sourceLocation: sourceLocation)
                #expect(Array(view.payload) == expected.2, sourceLocation: sourceLocation)
                #expect(view.byteCount == expected.3, sourceLocation: sourceLocation)
            case (.failure(let defect), .failure(let expected)):
                #expect(defect == expected, sourceLocation: sourceLocation)
            default: Issue.record("only one form can be read", sourceLocation: sourceLocation)
            }
        }
        return count
    }

    private static let epoch: Int64 = 1_577_836_800_000
    private static let timeEnd = epoch + 1 << 40

    @Test func everyHeaderIsReadAsStored() {
        let (start, end) = (Self.epoch, Self.timeEnd)
        let times = [0, 1, start - 1, start, start + 1, 1_800_000_000_123, end - 1, end]
        var lifetimes: [Int64] = [-1, 0]
        for unit: Int64 in [1, 1000, 60_000, 3_600_000] {
            for bits in 0...40 { lifetimes += [-1, 0, 1].map { (1 << bits + $0) * unit } }
        }
        let codecs = [.raw, .json, .propertyList, .custom, Codec(rawValue: 3), Codec(rawValue: 254)]
        for storedAt in times + [EngineTime.endMilliseconds] {
            var rules: [DeadlineRule] = [.governed, .ownNever, .own(0), .own(.max)]
            rules += lifetimes.map { .own(max(0, storedAt + $0)) }
            for (index, rule) in rules.enumerated() {
                let codec = codecs[index % codecs.count]
                check(Record(RecordHeader(storedAt: storedAt, rule: rule, codec: codec), payload: []).stored)
                check(Record(RecordHeader(storedAt: storedAt, rule: rule), payload: [1, 2, 3]).stored)
            }
        }
        for codec in UInt8.min...UInt8.max {
            check(Record(RecordHeader(storedAt: Self.epoch, codec: Codec(rawValue: codec)), payload: [9]).stored)
        }
    }

    @Test func headersTakeAsFewBytesAsPossible() {
        func headerCount(_ header: RecordHeader) -> Int { check(Record(header, payload: [7]).stored) - 1 }
        let now: Int64 = 1_800_000_000_123
        func lifetime(_ milliseconds: Int64) -> Int {
            headerCount(RecordHeader(storedAt: now, rule: .own(now + milliseconds)))
        }
        #expect(headerCount(RecordHeader(storedAt: now)) == 6)
        #expect(headerCount(RecordHeader(storedAt: now, rule: .ownNever, codec: .custom)) == 6)
        #expect(lifetime(255) == 7 && lifetime(256) == 8 && lifetime(65_537) == 9 && lifetime(1 << 24 + 1) == 10)
        #expect(lifetime(60_000) == 7 && lifetime(3600_000) == 7 && lifetime(86_400_000) == 7)
        #expect(lifetime(86_401_000) == 9)
        // As stored, with one byte more.
        #expect(lifetime(1 << 32 + 1) == 25)
        #expect(headerCount(RecordHeader(storedAt: 1)) == 17)
        #expect(headerCount(RecordHeader(storedAt: now, generation: 1)) == 17)
        #expect(headerCount(RecordHeader(storedAt: now, grace: 1000)) == 25)
    }

    @Test func tagsKeepTheEffectOfPurges() throws {
        let purges = TagPurges().adding(TagPurges.Note(soft: 9, softAt: 77))
        let tags = try Tags(checking: [Array("tag".utf8)])
        let record = Record(
            RecordHeader(storedAt: Self.epoch, grace: 5), tags: tags.section(stamp: 3), payload: [1, 2])
        #expect(check(record.stored, purges) == 1 + record.stored.count)
        check(record.stored, nil)
    }

    @Test func recordsThatMayBePinnedAreContainedAsStored() {
        let record = Record(RecordHeader(storedAt: Self.epoch), payload: [UInt8](repeating: 1, count: 84)).stored
        #expect(record.count == 100)
        #expect(check(record, storedFrom: 101) == 90)
        #expect(check(record, storedFrom: 100) == 101)
    }

    @Test func randomBytesAreKept() {
        var random = SeededGenerator(seed: testSeed())
        for _ in 0..<50_000 {
            var bytes = random.bytes(count: Int.random(in: 0...40, using: &random))
            // Most byte strings have a valid beginning and a recent time.
            if bytes.count > 3, !random.oneIn(4) {
                bytes.replaceSubrange(0..<4, with: [1 + bytes[0] % 8 / 7, bytes[1] % 4, bytes[2] % 5, 0])
            }
            if bytes.count > 7, !random.oneIn(4) { bytes.replaceSubrange(4..<8, with: [0, 0, 0, 0]) }
            for start in [8, 16] where bytes.count >= start + 8 && !random.oneIn(4) {
                bytes.replaceSubrange(start..<(start + 3), with: [0, 0, 1 + bytes[start] % 2])
            }
            check(bytes)
        }
    }
}
