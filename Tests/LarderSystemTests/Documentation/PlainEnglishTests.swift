import Foundation
import LarderTestSupport
import Testing

/// Tests that rejected phrases do not reappear in the documentation.
@Suite struct PlainEnglishTests {
    /// The phrases, each with its replacement.
    private static let phrases: [(phrase: String, instead: String)] = [
        ("mend", "fix"), ("mended", "fixed"), ("processor time", "CPU time"), ("for good", "permanently"),
        ("circle", "cycle"), ("blanks", "spaces"), ("is told of", "is notified of"), ("hears of", "is notified of"),
        ("everybody's", "generic"), ("nobody knows", "it is unknown"), ("stand behind", "follow"),
        ("gives back", "returns"), ("handed out", "returned"), ("takes back", "undoes"), ("for ever", "without limit"),
    ]

    @Test func theDocsContainNoRejectedPhrases() throws {
        let pages = try FileManager.default.subpathsOfDirectory(atPath: PackageRoot.path + "/docs")
            .filter { $0.hasSuffix(".md") }.map { "docs/" + $0 }
        #expect(pages.count > 8)
        let rejected = try Regex("\\b(?:" + Self.phrases.map(\.phrase).joined(separator: "|") + ")\\b")
        for page in ["README.md", "CHANGELOG.md"] + pages {
            let text = try DocsTests.read(page).lowercased()
            for match in text.matches(of: rejected) {
                let phrase = text[match.range]
                let instead = Self.phrases.first { $0.phrase == phrase }?.instead ?? ""
                Issue.record("\(page): write '\(instead)' instead of '\(phrase)'")
            }
        }
    }
}
