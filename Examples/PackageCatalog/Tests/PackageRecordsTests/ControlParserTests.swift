import Foundation
import PackageRecords
import Testing

/// Tests of the format's edge cases, with whole and split input.
@Suite struct ControlParserTests {
    /// The results: the first field of each record, or the line and the message of its problem.
    private static func outcome(_ pieces: [some Sequence<UInt8>]) -> [String] {
        var parser = ControlParser()
        var outcome: [String] = []
        func drain() {
            while true {
                switch parser.next() {
                case .stanza(let stanza): outcome.append("\(stanza.line) \(stanza["package"] ?? "?")")
                case .problem(let problem): outcome.append("\(problem)")
                case .needsMore: return
                }
            }
        }
        for piece in pieces {
            parser.append(piece)
            drain()
        }
        parser.finish()
        drain()
        return outcome
    }

    private let expected = [
        "3 gruss", "30 lowercase", "34 no-version",
        "line 39: the field version is there twice",
        "line 42: a continuation line without a field before it",
        "line 45: neither a field nor a continuation line",
        "50 bad-size", "55 huge-size", "60 bad-relation", "65 sparse",
    ]

    @Test func recordsAndProblemsComeInOrder() throws {
        #expect(Self.outcome([try Fixture.bytes("records.txt")]) == expected)
    }

    @Test("the result does not depend on how the input is split") func splittingTheInputChangesNothing() throws {
        let bytes = try Fixture.bytes("records.txt")
        #expect(Self.outcome(bytes.map { [$0] }) == expected)
        let badCuts = bytes.indices.filter { Self.outcome([bytes[..<$0], bytes[$0...]]) != expected }
        #expect(badCuts == [])
    }

    @Test func theLastRecordNeedsNoEmptyLine() throws {
        #expect(Self.outcome([try Fixture.bytes("tail.txt")]) == ["1 last"])
    }

    @Test func emptyInputHasNoRecords() {
        #expect(Self.outcome([[UInt8]()]) == [])
        #expect(Self.outcome([Array("\n\n \n\t\n".utf8)]) == [])
    }

    @Test("lines and records that are too long are skipped") func tooLongLinesAndRecordsAreSkipped() {
        let long = [UInt8](repeating: UInt8(ascii: "x"), count: ControlParser.lineBytesMax + 1)
        let end = Array("\nVersion: 1\n\nPackage: after\n".utf8)
        for pieces in [[long + end], [long, end], [long, long, end]] {
            let outcome = Self.outcome(pieces)
            #expect(outcome.count == 2)
            #expect(outcome.first == "line 1: the line is longer than \(ControlParser.lineBytesMax) bytes")
            #expect(outcome.last == "4 after")
        }
        let line = Array(" ".utf8) + [UInt8](repeating: UInt8(ascii: "y"), count: 1 << 19) + Array("\n".utf8)
        let pieces = [Array("Package: heavy\nText:\n".utf8)] + Array(repeating: line, count: 17) + [end]
        #expect(
            Self.outcome(pieces) == [
                "line 18: the record is longer than \(ControlParser.stanzaBytesMax) bytes", "21 ?", "23 after",
            ])
    }

    @Test("bytes that are not UTF-8 do not stop the parser") func invalidUTF8DoesNotStopTheParser() {
        #expect(Self.outcome([Array("Package: a\0b\nX: ".utf8) + [0xFF, 0xC3, 0x0A]]) == ["1 a\0b"])
        #expect(Self.outcome([[0xFF, 0xFE, 0x00, 0x3A, 0x0A]]).first?.hasPrefix("line 1: neither") == true)
    }
}

/// The files in Fixtures.
enum Fixture {
    static func path(_ name: String) throws -> String {
        let url = try #require(Bundle.module.url(forResource: "Fixtures/\(name)", withExtension: nil))
        return url.path(percentEncoded: false)
    }

    static func bytes(_ name: String) throws -> [UInt8] {
        Array(try Data(contentsOf: URL(filePath: path(name))))
    }
}
