@testable import LarderEngine

/// The examples of docs/StorageFormat.md, with the bytes that the engine writes. One test compares each example with
/// these bytes, another compares the page with this file.
enum StorageFormatExamples {
    struct Example {
        /// The name in the page: ` ```hex name `.
        let name: String
        /// The bytes as the page shows them.
        let hex: String
        /// The bytes that the engine writes.
        let made: [UInt8]
    }

    /// The time of the examples, in milliseconds since 1970: 2023-11-14 22:13:20 UTC.
    static let storedAt: Int64 = 1_700_000_000_000
    static let key = Key("user:1")

    static let governed = Record(RecordHeader(storedAt: storedAt, codec: .json), payload: Array("{\"a\":1}".utf8))
    static let ownDeadline = Record(
        RecordHeader(storedAt: storedAt, rule: .own(storedAt + 3_600_000)), payload: Array("hello".utf8))
    static let ownNever = Record(RecordHeader(storedAt: storedAt, rule: .ownNever, generation: 7), payload: [])

    static let ownGrace = Record(
        RecordHeader(storedAt: storedAt, rule: .own(storedAt + 3_600_000), grace: 60_000),
        payload: Array("hello".utf8))

    static var tagged: Record {
        let names = ["article:17", "front"].map { Array($0.utf8) }
        let tags = (try? Tags(checking: names))?.section(stamp: 42) ?? []
        return Record(RecordHeader(storedAt: storedAt, codec: .json), tags: tags, payload: Array("{\"a\":1}".utf8))
    }

    static let timeMark = TimeMark(number: 7, time: 1_700_003_600_000, wall: 1_700_000_000_000)
    static let journalMark = JournalMark(
        number: 7, reserved: 4_723_097_222_722_355_200, removed: Sequences.first + 40, synced: Sequences.first + 43)
    static let sequences = SequencesFile(
        commitUnits: 4_723_097_222_722_355_200, epochs: 1_700_000_001_025, databases: ["books", DatabaseName.ledger])
    static let pointer = PointerFile(
        epoch: 1_700_000_000_001, rules: FreshnessRules(policy: .low, deadBefore: 1_699_999_940_000))

    /// The header of segment 2. Segment 1 has 1234 bytes and ends with sequence 41.
    static let journalSegment = JournalSegmentHeader(
        number: 2, previousNumber: 1, previousBytes: 1234, previousSequence: 41)

    /// The first group of segment 2: a put and a removal in `books`, at a time when all groups up to sequence 40 were
    /// synced.
    static var journalFrame: [UInt8] {
        let batch = JournalBatch()
        batch.select(database: "books", number: 0, epoch: 1_700_000_000_001)
        Array("user:1".utf8).withUnsafeBytes { key in
            governed.stored.withUnsafeBytes { batch.put(key: key, record: $0, sequence: 42) }
        }
        Array("a".utf8).withUnsafeBytes { batch.remove(key: $0, sequence: 43) }
        return batch.seal(segment: 2, offset: JournalFormat.segmentHeaderBytes, syncedSequence: 40).map { Array($0) }
            ?? []
    }

    static let all: [Example] = [
        Example(
            name: "time-mark",
            hex: "4c 41 52 44 45 52 54 4d 00 00 00 01 2c 75 c0 09 00 00 00 00 00 00 00 07 00 00 01 8b d0 1c "
                + "56 80 00 00 01 8b cf e5 68 00 67 36 b2 1c",
            made: timeMark.bytes),
        Example(
            name: "journal-mark",
            hex: "4c 41 52 44 45 52 53 59 00 00 00 01 c5 5b e3 c7 00 00 00 00 00 00 00 07 41 8b cf e6 68 00 "
                + "00 00 40 00 00 00 00 00 00 28 40 00 00 00 00 00 00 2b 7e de e5 f9",
            made: journalMark.bytes),
        Example(
            name: "journal-segment",
            hex: "4c 41 52 44 45 52 4a 4c 00 00 00 01 dd 17 10 30 00 00 00 00 00 00 00 02 00 00 00 00 00 00 "
                + "00 01 00 00 00 00 00 00 04 d2 00 00 00 00 00 00 00 29 75 78 9e 63",
            made: journalSegment.bytes),
        Example(
            name: "journal-frame",
            hex: "f7 4c 4a 46 46 66 cf 87 00 00 00 00 00 00 00 3b 00 00 00 00 00 00 00 2a 00 00 00 00 00 00 "
                + "00 2b 00 00 00 00 00 00 00 28 01 05 00 00 01 8b cf e5 68 01 62 6f 6f 6b 73 02 00 00 00 06 "
                + "00 00 00 17 75 73 65 72 3a 31 01 00 01 00 00 00 00 00 00 00 01 8b cf e5 68 00 7b 22 61 22 "
                + "3a 31 7d 03 00 00 00 01 61",
            made: journalFrame),
        Example(name: "format-key", hex: "00 66 6f 72 6d 61 74", made: EpochMetadata.formatKey),
        Example(name: "format-value", hex: "01", made: [EpochMetadata.formatVersion]),
        Example(name: "journal-record-key", hex: "00 6a 6f 75 72 6e 61 6c", made: EpochMetadata.journalKey),
        Example(
            name: "journal-record-value", hex: "00 00 00 00 00 00 00 2b", made: EpochMetadata.journalValue(43)),
        Example(name: "record-key", hex: "01 75 73 65 72 3a 31", made: key.stored),
        Example(
            name: "record-governed",
            hex: "01 00 01 00 00 00 00 00 00 00 01 8b cf e5 68 00 7b 22 61 22 3a 31 7d", made: governed.stored),
        Example(
            name: "record-own-deadline",
            hex: "01 01 00 00 00 00 00 00 00 00 01 8b cf e5 68 00 00 00 01 8b d0 1c 56 80 68 65 6c 6c 6f",
            made: ownDeadline.stored),
        Example(
            name: "record-own-never", hex: "01 02 00 00 00 00 00 07 00 00 01 8b cf e5 68 00", made: ownNever.stored),
        Example(
            name: "record-own-grace",
            hex: "02 05 00 00 00 00 00 00 00 00 01 8b cf e5 68 00 00 00 01 8b d0 1c 56 80 00 00 00 00 00 00 ea 60 "
                + "68 65 6c 6c 6f",
            made: ownGrace.stored),
        Example(
            name: "record-tags",
            hex: "02 08 01 00 00 00 00 00 00 00 01 8b cf e5 68 00 00 00 00 00 00 00 00 2a 02 0a 61 72 74 69 63 6c 65 "
                + "3a 31 37 05 66 72 6f 6e 74 7b 22 61 22 3a 31 7d",
            made: tagged.stored),
        Example(
            name: "index-own-deadline", hex: "02 00 00 01 8b d0 1c 80 00 75 73 65 72 3a 31",
            made: ExpiryIndex.key(for: key, ownDeadline.header, policy: .low) ?? []),
        Example(
            name: "index-governed", hex: "03 00 00 01 8b cf e5 80 00 75 73 65 72 3a 31",
            made: ExpiryIndex.key(for: key, governed.header, policy: .middle) ?? []),
        Example(name: "index-value", hex: "00", made: ExpiryIndex.value),
        Example(
            name: "hint-key", hex: "04 00 00 01 8b cf e5 68 02 62 6f 00 75 73 65 72 3a 31",
            made: Hint.head(1_700_000_000_002) + [0x62, 0x6F, 0] + key.bytes),
        Example(name: "hint-value", hex: "00 03", made: Hint.value(termCount: 3)),
    ]

    static func bytes(_ hex: String) -> [UInt8]? {
        let words = hex.split(whereSeparator: \.isWhitespace)
        let bytes = words.compactMap { word in word.utf8.count == 2 ? UInt8(word, radix: 16) : nil }
        return bytes.count == words.count ? bytes : nil
    }
}
