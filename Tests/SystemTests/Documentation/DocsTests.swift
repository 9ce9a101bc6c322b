import CommandCatalog
import ProtocolReference
import TestSupport
import Testing

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The documentation says what the code says.
@Suite struct DocsTests {
    /// Where the built programs are: the test bundle stands beside them.
    static let products: String = {
        let bundle = CommandLine.arguments.first { $0.hasSuffix(".xctest") } ?? CommandLine.arguments[0]
        return bundle.split(separator: "/").dropLast().reduce("") { $0 + "/" + $1 }
    }()

    static func read(_ path: String) throws -> String {
        try String(contentsOf: URL(filePath: PackageRoot.path + "/" + path), encoding: .utf8)
    }

    @Test func protocolPageIsMadeFromTheCommandTable() throws {
        let path = "docs/Protocol.md"
        if ProcessInfo.processInfo.environment["LARDER_UPDATE_DOCS"] != nil {
            try ProtocolPage.text.write(
                to: URL(filePath: PackageRoot.path + "/" + path), atomically: true, encoding: .utf8)
        }
        #expect(try Self.read(path) == ProtocolPage.text, "run: make docs")
    }

    /// Whoever runs the tests finds what they listen to.
    @Test func everyVariableOfTheTestsIsDocumented() throws {
        let page = try Self.read("docs/Testing.md")
        var found: Set<Substring> = []
        for file in SourceModule.paths(below: "Tests") {
            let text = try Self.read(file)
            for match in text.matches(of: /(?:getenv|environment|number)\("(LARDER_\w+)"\)/) {
                found.insert(match.output.1)
            }
        }
        #expect(found.count >= 15)
        for name in found.sorted() { #expect(page.contains("| `\(name)` |"), "\(name) is not in docs/Testing.md") }
    }

    @Test func everyCommandHasAllItsTexts() {
        for spec in CommandMetadata.withSubcommands {
            #expect(!spec.summary.isEmpty && !spec.reply.isEmpty && !spec.complexity.isEmpty, "\(spec.name)")
            #expect(spec.summary.last == "." || spec.summary.hasSuffix(")."), "\(spec.name): summary is a sentence")
            #expect(spec.name == spec.name.lowercased())
        }
    }
}
