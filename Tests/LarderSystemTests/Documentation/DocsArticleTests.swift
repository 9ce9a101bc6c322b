import Foundation
import LarderTestSupport
import Testing

/// Tests of the documentation catalogues: their code compiles, their links work, and every public declaration has a
/// comment.
@Suite struct DocsArticleTests {
    private struct Graph: Decodable {
        struct Symbol: Decodable {
            struct Comment: Decodable {}

            let pathComponents: [String]
            let docComment: Comment?
        }

        let symbols: [Symbol]
    }

    private static func pages(_ module: String) throws -> [String] {
        let directory = "Sources/\(module)/\(module).docc"
        let names = try FileManager.default.contentsOfDirectory(atPath: PackageRoot.path + "/" + directory)
        return names.filter { $0.hasSuffix(".md") && $0 != module + ".md" }.map { directory + "/" + $0 }
    }

    @Test(arguments: [
        ("Larder", "LarderTests/Larder/LibraryArticleTests"),
        ("LarderClient", "LarderClientTests/Async/ClientArticleTests"),
    ])
    func codeOfTheArticlesIsTested(_ module: String, _ tests: String) throws {
        let sources = try DocsReadmeTests.examples() + [try DocsTests.read("Tests/\(tests).swift")]
        let pages = try Self.pages(module)
        #expect(pages.count >= 4)
        for page in pages { try DocsReadmeTests.expectSwift(of: page, in: sources) }
    }

    /// Does the same as `make html`. The script fails if a page is missing in the sidebar or a link does not work.
    @Test func theSiteHasAllPagesAndWorkingLinks() throws {
        let output = try TemporaryDirectory()
        let (end, text, errors) = try ChildProcess.run(
            "/usr/bin/python3", [PackageRoot.path + "/docs/site.py", output.path])
        #expect(end == .exited(0) && errors.isEmpty && text.contains(" pages in "), "\(text)\(errors)")
        let index = try String(contentsOfFile: output.path + "/index.html", encoding: .utf8)
        for page in ["Operating", "Protocol", "Architecture", "Larder-GettingStarted", "LarderClient-Connecting"] {
            #expect(index.contains("<a href=\"\(page).html\">"), "the sidebar lacks \(page)")
            #expect(FileManager.default.fileExists(atPath: "\(output.path)/\(page).html"))
        }
    }

    /// Does the same as `make html`, but treats a warning as an error.
    @Test("the documentation catalogs build without warnings and cover all symbols", .timeLimit(.minutes(10)))
    func theCatalogueIsComplete() async throws {
        let output = try TemporaryDirectory()
        let result = try await ExampleProcess.run("docs/html.sh '\(DocsTests.products)' '\(output.path)'")
        #expect(result.exitCode == 0, "\(result.output)\(result.errors)")
        if result.output.contains("has no docc") { return }
        for module in ["Larder", "LarderClient"] {
            let page = "\(output.path)/\(module)/documentation/\(module.lowercased())/index.html"
            #expect(FileManager.default.fileExists(atPath: page))
            let landing = try DocsTests.read("Sources/\(module)/\(module).docc/\(module).md")
            let data = try Data(contentsOf: URL(filePath: "\(output.path)/\(module).symbols.json"))
            let symbols = try JSONDecoder().decode(Graph.self, from: data).symbols
            #expect(symbols.count > 200)
            for symbol in symbols {
                let name = symbol.pathComponents.joined(separator: "/")
                #expect(symbol.docComment != nil, "\(module): \(name) has no comment")
                guard symbol.pathComponents.count == 1 else { continue }
                let link = name == module ? "\(module)/\(name)" : name
                #expect(landing.contains("- ``\(link)``"), "\(module).md does not list \(name)")
            }
        }
    }
}
