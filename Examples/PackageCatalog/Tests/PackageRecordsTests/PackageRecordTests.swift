import Foundation
import PackageRecords
import Testing

/// Tests that parse files into models.
@Suite struct PackageRecordTests {
    private func read(_ name: String, _ translations: Translations = Translations()) throws
        -> (records: [PackageRecord], problems: [String])
    {
        var records: [PackageRecord] = []
        var problems: [String] = []
        let count = try ControlFile.read(try Fixture.path(name)) { step in
            do {
                if case .problem(let problem) = step { throw problem }
                guard case .stanza(let stanza) = step else { return }
                records.append(try PackageRecord(stanza, translations: translations))
            } catch let problem as RecordProblem {
                problems.append(problem.description)
            }
        }
        #expect(count == (try Fixture.bytes(name).count))
        return (records, problems)
    }

    @Test("all fields of a record are parsed") func allFieldsAreParsed() throws {
        let record = try #require(try read("records.txt").records.first)
        #expect(record.name == "gruss" && record.version == "1.0-3+b1" && record.architecture == "amd64")
        #expect(record.installedKey == "gruss:amd64" && record.availableKey == "gruss:amd64=1.0-3+b1")
        #expect(record.source == "gruss-src (1.0-3)" && record.section == "text" && record.priority == "optional")
        #expect(record.maintainer == "Jürgen Groß <juergen@example.org>")
        #expect(record.homepage == "https://example.org/gruss")
        #expect(record.status == "install ok installed" && record.isEssential)
        #expect(record.installedBytes == 1234 * 1024 && record.downloadBytes == nil)
        #expect(record.summary == "says hello – and 再见")
        #expect(
            record.descriptions["en"]?.text == """
                This is the first paragraph: with a colon,
                and a second line.

                  * kept as it is

                Ende: Grüße!
                """)
        #expect(record.relations[.preDepends]?.map(\.description) == ["libc6 (>= 2.36)"])
        #expect(
            record.relations[.depends]?.map(\.description) == [
                "default-mta | mail-transport-agent", "python3:any (>= 3.11~)", "gruss-data (= 1.0-3)", "perl:any",
            ])
        #expect(
            record.relations[.conflicts]?.map(\.description) == [
                "gruss-old (<< 0.9)", "gruss-old (>> 2)", "gruss-beta (<= 0.5)", "gruss-rc (>= 0.5)",
            ])
        #expect(record.relations.count == 3)
    }

    @Test("missing fields are nil or empty") func missingFieldsAreNilOrEmpty() throws {
        let records = try read("records.txt").records
        #expect(records.map(\.name) == ["gruss", "lowercase", "sparse"])
        let lowercase = try #require(records.dropFirst().first)
        #expect(lowercase.version == "2:0.1~rc1" && lowercase.summary.isEmpty && lowercase.relations.isEmpty)
        let sparse = try #require(records.last)
        #expect(sparse.downloadBytes == 0 && sparse.installedBytes == nil && sparse.relations.isEmpty)
        #expect(sparse.descriptions["en"] == .init(summary: "", text: "only a long text"))
        #expect(sparse.descriptions["zh_CN"] == .init(summary: "只有一行", text: ""))
        #expect(sparse.descriptions["ja"] == .init(summary: "一行", text: "\n二行目"))
    }

    @Test("invalid records are reported with line and reason") func invalidRecordsAreReported() throws {
        #expect(
            try read("records.txt").problems == [
                "line 34: there is no Version",
                "line 39: the field version is there twice",
                "line 42: a continuation line without a field before it",
                "line 45: neither a field nor a continuation line",
                "line 50: Installed-Size is no size",
                "line 55: Installed-Size is too large",
                "line 60: bad-relation: Depends: invalid version in 'libc6 (>= 2.36'",
            ])
    }

    @Test("translations are added to their record") func translationsAreAddedToTheirRecord() throws {
        var translations = Translations()
        var problems: [String] = []
        try ControlFile.read(try Fixture.path("translations.txt")) { step in
            guard case .stanza(let stanza) = step else { return }
            do { try translations.add(stanza) } catch { problems.append("\(error)") }
        }
        #expect(translations.count == 3 && translations.languages == ["ja", "uk"])
        #expect(problems == ["line 16: there is no Description-md5"])
        let record = try #require(try read("records.txt", translations).records.first)
        #expect(record.descriptions.keys.sorted() == ["en", "ja", "uk"])
        #expect(record.descriptions["ja"]?.summary == "挨拶をする")
        #expect(record.descriptions["ja"]?.text == "これは最初の段落です。\n\nこれは二番目です。")
        #expect(record.descriptions["uk"]?.summary == "вітається")
    }

    @Test func modelsSurviveJSON() throws {
        let records = try read("records.txt").records
        let json = try JSONEncoder().encode(records)
        #expect(try JSONDecoder().decode([PackageRecord].self, from: json) == records)
        // Other programs can read the kinds: they are names of members of an object.
        #expect(String(decoding: json, as: UTF8.self).contains("\"Pre-Depends\":[{"))
    }

    @Test func aMissingFileIsAnError() {
        #expect(throws: ControlFile.Failure.self) { try ControlFile.read("/nowhere/at/all") { _ in } }
    }

    @Test(arguments: [
        "| a", "a |", "a b", "a (1.0)", "a (>= )", "a (>= 1 2)", "a (>= 1) x", "a:", "ä", "(>= 1)", "a (>=1",
        "a [amd64]",
    ])
    func malformedRelationsAreErrors(_ text: String) throws {
        var parser = ControlParser()
        parser.append("Package: p\nVersion: 1\nArchitecture: all\nDepends: \(text)\n".utf8)
        parser.finish()
        guard case .stanza(let stanza) = parser.next() else {
            Issue.record("no record")
            return
        }
        #expect(throws: RecordProblem.self) { try PackageRecord(stanza) }
    }
}
