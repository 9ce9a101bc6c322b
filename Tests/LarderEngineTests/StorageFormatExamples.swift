@testable import LarderEngine

/// The worked examples of docs/StorageFormat.md: what stands there, and what the engine makes. One test compares the two
/// with each other, another the page with this file.
enum StorageFormatExamples {
    struct Example {
        /// The name in the page: ` ```hex name `.
        let name: String
        /// The bytes as the page shows them.
        let hex: String
        /// The bytes as the engine makes them.
        let made: [UInt8]
    }

    /// 2023-11-14 22:13:20 UTC.
    static let storedAt: Int64 = 1_700_000_000_000
    static let key = Key("user:1")

    static let governed = Record(RecordHeader(storedAt: storedAt, codec: .json), payload: Array("{\"a\":1}".utf8))
    static let ownDeadline = Record(
        RecordHeader(storedAt: storedAt, rule: .own(storedAt + 3_600_000)), payload: Array("hello".utf8))
    static let ownNever = Record(RecordHeader(storedAt: storedAt, rule: .ownNever, generation: 7), payload: [])

    static let pointer = PointerFile(
        epoch: 1_700_000_000_001, rules: FreshnessRules(policy: .low, deadBefore: 1_699_999_940_000))

    static let all: [Example] = [
        Example(name: "format-key", hex: "00 66 6f 72 6d 61 74", made: Database.Metadata.formatKey),
        Example(name: "format-value", hex: "01", made: [Database.Metadata.formatVersion]),
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
            name: "index-own-deadline", hex: "02 00 00 01 8b d0 1c 80 00 75 73 65 72 3a 31",
            made: ExpiryIndex.key(for: key, ownDeadline.header, policy: .low) ?? []),
        Example(
            name: "index-governed", hex: "03 00 00 01 8b cf e5 80 00 75 73 65 72 3a 31",
            made: ExpiryIndex.key(for: key, governed.header, policy: .middle) ?? []),
        Example(name: "index-value", hex: "00", made: ExpiryIndex.value),
    ]

    static func bytes(_ hex: String) -> [UInt8]? {
        let words = hex.split(whereSeparator: \.isWhitespace)
        let bytes = words.compactMap { word in word.utf8.count == 2 ? UInt8(word, radix: 16) : nil }
        return bytes.count == words.count ? bytes : nil
    }
}
