import Foundation
import LarderTestSupport
import Testing

/// The documentation stays short.
@Suite struct DocsSizeTests {
    private static func words(_ text: String) -> Int { text.split(whereSeparator: \.isWhitespace).count }

    @Test func readmeIsReadInFiveMinutes() throws {
        let text = try DocsTests.read("README.md")
        #expect(text.split(separator: "\n", omittingEmptySubsequences: false).count - 1 <= 170)
        #expect(Self.words(text) <= 1300)
    }

    /// The limits are what has been reached: lower them, never raise them. The aim is 16 pages with 40,000 words.
    @Test func thePagesStayFewAndShort() throws {
        let names = try FileManager.default.subpathsOfDirectory(atPath: PackageRoot.path + "/docs")
            .filter { $0.hasSuffix(".md") }
        #expect(names.count <= 38)
        let total = try names.map { Self.words(try DocsTests.read("docs/" + $0)) }.reduce(0, +)
        #expect(total <= 77_400, "docs has \(total) words")
    }
}
