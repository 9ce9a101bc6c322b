import Foundation
import LarderTestSupport
import Testing

/// Tests that the documentation stays short.
@Suite struct DocsSizeTests {
    private static func words(_ text: String) -> Int { text.split(whereSeparator: \.isWhitespace).count }

    @Test("README has at most 1,300 words") func readmeIsReadInFiveMinutes() throws {
        let text = try DocsTests.read("README.md")
        #expect(text.split(separator: "\n", omittingEmptySubsequences: false).count - 1 <= 170)
        #expect(Self.words(text) <= 1300)
    }

    @Test func theNumberAndLengthOfTheDocsPagesAreLimited() throws {
        let names = try FileManager.default.subpathsOfDirectory(atPath: PackageRoot.path + "/docs")
            .filter { $0.hasSuffix(".md") }
        #expect(names.count <= 16)
        let total = try names.map { Self.words(try DocsTests.read("docs/" + $0)) }.reduce(0, +)
        #expect(total <= 42_000, "docs has \(total) words")
    }
}
