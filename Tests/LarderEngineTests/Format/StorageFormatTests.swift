import LarderPlatform
import LarderTestSupport
import Testing

@testable import LarderEngine

/// Tests that docs/StorageFormat.md describes what the engine writes.
@Suite struct StorageFormatTests {
    @Test func theEngineWritesTheDocumentedExamples() throws {
        for example in StorageFormatExamples.all {
            let bytes = try #require(StorageFormatExamples.bytes(example.hex), "\(example.name)")
            #expect(bytes == example.made, "\(example.name)")
        }
        for record in [
            StorageFormatExamples.governed, StorageFormatExamples.ownDeadline, StorageFormatExamples.ownNever,
        ] {
            #expect(try Record(parsing: record.stored, nil) == record)
        }
    }

    @Test func theDocumentationShowsTheExamples() throws {
        let blocks = try Self.blocks(ofKind: "hex")
        for example in StorageFormatExamples.all {
            // The text after a semicolon is an explanation.
            let hex = try #require(blocks[example.name], "\(example.name) is not in the page")
                .map { $0.prefix { $0 != ";" } }.joined(separator: "\n")
            #expect(StorageFormatExamples.bytes(hex) == example.made, "\(example.name)")
        }
        #expect(Set(blocks.keys) == Set(StorageFormatExamples.all.map(\.name)))
    }

    @Test func theDocumentationShowsAPointerFile() throws {
        let lines = try #require(try Self.blocks(ofKind: "text")["pointer"])
        let text = lines.map { $0 + "\n" }.joined()
        #expect(text == StorageFormatExamples.pointer.text)
        #expect(try PointerFile(parsing: Array(text.utf8)) == StorageFormatExamples.pointer)
    }

    @Test func theDocumentationShowsASequencesFile() throws {
        let lines = try #require(try Self.blocks(ofKind: "text")["sequences"])
        let text = lines.map { $0 + "\n" }.joined()
        #expect(text == StorageFormatExamples.sequences.text)
        #expect(try SequencesFile(parsing: Array(text.utf8)) == StorageFormatExamples.sequences)
    }

    /// Each constant on the page has the value that the code uses.
    @Test func theDocumentationStatesTheConstantsOfTheCode() throws {
        let page = try Self.page().joined(separator: " ")
        for text in [
            "| `00` | metadata |", "| `01` | entry |", "| `02` | expiry index, own deadlines |",
            "| `03` | expiry index, governed entries |", "| `04` | [hint](#hints) of an index |",
            "at most \(Key.bytesMax) bytes",
            "at most \(Record.payloadBytesMax) bytes",
            "at most \(PointerFile.formatVersion). A higher", "`\(LarderLock.fileName)`", "`\(PointerFile.name)`",
            "`\(DamagedFiles.directoryName)/", "| 0 | raw |", "| 1 | json |", "| 2 | plist |", "| 255 | custom |",
            "`\(JournalFormat.directoryName)/`", "`\(JournalFormat.fileName(1))`",
            "payload of at most \(JournalFormat.payloadBytesMax)",
            "`\(TimeKeeper.fileName)`", "offsets 0 and \(TimeKeeper.secondOffset)", "\(TimeKeeper.restMilliseconds) ms",
            "`larder-sequences \(SequencesFile.formatVersion)`", "`\(SequencesFile.name)`",
            "\(Sequences.unitsStep) sequences", "\(Sequences.epochsStep) epoch numbers",
            "header is \(JournalFormat.segmentHeaderBytes) bytes", "header of \(JournalFormat.frameHeaderBytes) bytes",
            "Keys are at most \(JournalFormat.keyBytesMax) bytes, records at most \(JournalFormat.recordBytesMax)",
            "less than \(ExpiryIndex.unindexedMilliseconds) ms", "`\(DamagedFiles.directoryName)/<number>-journal/`",
        ] { #expect(page.contains(text), "the page lacks: \(text)") }
        let kinds = [KeyKind.metadata, KeyKind.record, KeyKind.ownDeadline, KeyKind.governed, KeyKind.hint]
        #expect(kinds == [0, 1, 2, 3, 4])
        #expect(IndexProgress.ready.value == [1])
        #expect(IndexProgress.key(7) == [0] + Array("index".utf8) + [0, 0, 0, 0, 0, 0, 0, 7])
        let half = IndexProgress.building(records: 2, position: [1, 0x61])
        #expect(half.value == [0, 0, 0, 0, 0, 0, 0, 0, 2, 1, 0x61])
        #expect(half.value.withUnsafeBytes { IndexProgress(parsing: $0) } == half)
        #expect([Codec.raw, .json, .propertyList, .custom].map(\.rawValue) == [0, 1, 2, 255])
        #expect([JournalFormat.Kind.database, JournalFormat.Kind.put, JournalFormat.Kind.remove] == [1, 2, 3])
        #expect(JournalFormat.version == 1)
        #expect(TimeMark.version == 1 && StorageFormatExamples.timeMark.bytes.count == TimeMark.byteCount)
        #expect(JournalMark.version == 1 && StorageFormatExamples.journalMark.bytes.count == JournalMark.byteCount)
        #expect(
            JournalMarkFile.secondOffset == TimeKeeper.secondOffset && page.contains("`\(JournalMarkFile.fileName)`"))
        #expect(RecordHeader.version == 2)
        #expect(EpochMetadata.formatVersion == 1)
    }

    /// A database has no keys of kinds that the page does not list.
    @Test func aDatabaseHasOnlyTheDocumentedKeys() throws {
        let larder = try TestLarder()
        let database = try larder.database(policy: .middle)
        try database.put("user:1", "{}")
        try database.put("user:2", "{}", rule: .own(database.now() + 3_600_000))
        try database.put("user:3", "{}", rule: .ownNever)
        let entries = try #require(try database.flushedStore()).rawEntries()
        #expect(entries.map { $0.key[0] } == [0, 0, 1, 1, 1, 2, 3])
        #expect(entries.prefix(2).map(\.key) == [EpochMetadata.formatKey, EpochMetadata.journalKey])
        #expect(entries.allSatisfy { !$0.value.isEmpty })
        let names = try FileSystem.list(larder.path + "/books")
        #expect(names == ["\(try #require(database.durableState.store).epoch)", "POINTER", "POINTER.new"])
        #expect(try Files.read(larder.path + "/LOCK").starts(with: "pid ".utf8))
    }

    /// An entry that lives for a day or longer has no index key, whatever sets its deadline.
    @Test func longLivedEntriesHaveNoIndexKey() throws {
        let larder = try TestLarder()
        let database = try larder.database(policy: .low)
        let day = ExpiryIndex.unindexedMilliseconds
        try database.put("a", "")
        try database.put("b", "", rule: .own(database.now() + day))
        try database.put("c", "", rule: .own(database.now() + day - 1))
        let entries = try #require(try database.flushedStore()).rawEntries()
        #expect(entries.map { $0.key[0] } == [0, 0, 1, 1, 1, 2])
        #expect(entries.last?.key.last == UInt8(ascii: "c"))
    }

    /// The larder's directory has the files that the page lists. After a clean shutdown the journal is empty.
    @Test func theJournalIsEmptyAfterACleanShutdown() throws {
        let larder = try TestLarder()
        try larder.database(policy: .middle).put("a", "1")
        let journal = larder.path + "/" + JournalFormat.directoryName
        #expect(try FileSystem.list(larder.path) == ["JOURNAL", "LOCK", "SEQUENCES", "SYNCED", "TIME", "books"])
        #expect(try FileSystem.list(journal) == [JournalFormat.fileName(1)])
        larder.close()
        #expect(try FileSystem.list(journal) == [])
    }

    // MARK: The page

    private static func page() throws -> [String] {
        let text = String(decoding: try Files.read(PackageRoot.path + "/docs/StorageFormat.md"), as: UTF8.self)
        return text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    }

    /// The fenced blocks that begin with ` ```kind name `, by name.
    private static func blocks(ofKind kind: String) throws -> [String: [String]] {
        var blocks: [String: [String]] = [:]
        var open: String?
        for line in try page() {
            if let name = open {
                if line == "```" { open = nil } else { blocks[name, default: []].append(line) }
            } else if line.hasPrefix("```\(kind) ") {
                let name = String(line.dropFirst("```\(kind) ".count))
                open = name
                blocks[name] = []
            }
        }
        return blocks
    }
}
