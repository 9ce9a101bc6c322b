import Foundation
import LarderTestSupport
import Testing

/// Tests that docs/Architecture.md and its diagrams match the code.
@Suite struct ArchitectureTests {
    private static let directory = PackageRoot.path + "/docs/diagrams"
    private static let isUpdating = TestSetting.updateDocs.isSet

    /// Returns the direct dependencies between modules, without redundant ones, as Graphviz source.
    private static func modules() throws -> String {
        let package = try String(contentsOfFile: PackageRoot.path + "/Package.swift", encoding: .utf8)
        let target = #/\.(?:executableTarget|target|systemLibrary)\(\s*name: "(\w+)"(?<rest>[^\n]*(?:\n {12}[^\n]*)*)/#
        var uses: [String: Set<String>] = [:]
        for match in package.matches(of: target) where !match.rest.contains(/path: "(Tests|Examples)/) {
            let list = match.rest.firstMatch(of: #/(?s)dependencies: (.*?)(?:\w+Settings:|exclude:|$)/#)?.1 ?? ""
            uses[String(match.1)] = Set(list.matches(of: #/"(\w+)"/#).map { String($0.1) })
        }
        func reaches(_ from: String, _ to: String) -> Bool {
            uses[from, default: []].contains { $0 == to || reaches($0, to) }
        }
        var lines: [String] = []
        for (module, used) in uses.sorted(by: { $0.key < $1.key }) {
            let isProgram = module.hasPrefix("larder")
            let isC = module.hasPrefix("C") && module.dropFirst().first?.isUppercase ?? false
            let color = isProgram ? "#dcebdc" : isC ? "#e8e8f4" : "#f4f4f4"
            lines.append("    \(module) [fillcolor=\"\(color)\"]")
            for other in used.sorted() where !used.contains(where: { $0 != other && reaches($0, other) }) {
                lines.append("    \(module) -> \(other)")
            }
        }
        return """
            // Made of Package.swift by ArchitectureTests: run `make docs`. Green: programs; blue: C and C++.
            digraph modules {
                graph [rankdir=TB, nodesep=0.2, ranksep=0.4, bgcolor="white"]
                node [shape=box, style="rounded,filled", fontname="Helvetica", fontsize=11]
                edge [color="#555555", arrowsize=0.6]
            \(lines.joined(separator: "\n"))
            }

            """
    }

    @Test("the module diagram matches Package.swift") func theModulesAreThePackages() throws {
        let path = Self.directory + "/modules.dot"
        let text = try Self.modules()
        #expect(text.contains("larderd -> LarderServer") && text.contains("LevelDB -> CLarderLevelDBFiles"))
        if Self.isUpdating { try text.write(toFile: path, atomically: true, encoding: .utf8) }
        #expect(try String(contentsOfFile: path, encoding: .utf8) == text, "run: make docs")
    }

    /// Returns the words in a diagram, regardless of the version of Graphviz that has drawn it.
    private static func words(_ svg: String) -> [String] {
        svg.replacing("&#45;", with: "-").matches(of: #/<text[^>]*>([^<]*)</text>/#).map { String($0.1) }.sorted()
    }

    /// Draws each source with Graphviz, and compares the words with the stored diagram.
    @Test func everyDiagramMatchesItsSource() async throws {
        if Self.isUpdating { try theModulesAreThePackages() }
        let page = try ["Architecture", "Freshness"].map { name in
            try String(contentsOfFile: PackageRoot.path + "/docs/\(name).md", encoding: .utf8)
        }.joined()
        let files = try FileManager.default.contentsOfDirectory(atPath: Self.directory)
        let sources = files.filter { $0.hasSuffix(".dot") }
        #expect(sources.count == 7)
        for source in sources {
            let picture = source.dropLast(3) + "svg"
            let (end, drawn, errors) = try ChildProcess.run("dot", ["-Tsvg", Self.directory + "/" + source])
            try #require(end == .exited(0) && errors.isEmpty, "\(source): \(errors)")
            let path = Self.directory + "/" + picture
            if Self.isUpdating { try drawn.write(toFile: path, atomically: true, encoding: .utf8) }
            let kept = Self.words(try String(contentsOfFile: path, encoding: .utf8))
            #expect(kept == Self.words(drawn) && kept.count > 5, "\(picture): run `make docs`")
            #expect(page.contains("](diagrams/\(picture))"), "\(picture) is shown nowhere")
        }
    }

    /// The pages that explain the sources.
    private static let pages = ["docs/Architecture.md", "docs/Origins.md", "docs/Testing.md", "docs/CONTRIBUTING.md"]

    /// The headings of a page in the form used by links: in lower case, words joined by hyphens, without punctuation.
    private static func anchors(_ text: String) -> Set<String> {
        Set(
            text.matches(of: #/(?m)^#+ (.+)$/#).map { match in
                match.1.lowercased().filter { $0.isLetter || $0.isNumber || " -_".contains($0) }
                    .replacing(" ", with: "-")
            })
    }

    /// Every link between pages refers to an existing file, and to an existing heading in it.
    @Test func everyLinkOfTheDocsHasATarget() throws {
        let files = FileManager.default
        let pages = try files.subpathsOfDirectory(atPath: PackageRoot.path + "/docs").filter { $0.hasSuffix(".md") }
        var count = 0
        for page in pages.map({ "docs/" + $0 }) + ["README.md", "CHANGELOG.md"] {
            let text = try String(contentsOfFile: PackageRoot.path + "/" + page, encoding: .utf8)
            for match in text.matches(of: #/\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)/#) {
                count += 1
                let directory = URL(fileURLWithPath: PackageRoot.path + "/" + page).deletingLastPathComponent().path
                let path = match.1.isEmpty ? PackageRoot.path + "/" + page : directory + "/" + match.1
                guard files.fileExists(atPath: path) else {
                    Issue.record("\(page): \(match.0): there is no such file")
                    continue
                }
                guard let anchor = match.2 else { continue }
                let there = Self.anchors(try String(contentsOfFile: path, encoding: .utf8))
                #expect(there.contains(String(anchor)), "\(page): \(match.0): there is no such heading")
            }
        }
        #expect(count > 30)
    }

    /// The declarations in the sources, and the names of their files, directories ("rooms") and modules. Read once for
    /// all pages.
    private static let sources = Result {
        let files = try FileManager.default.subpathsOfDirectory(atPath: PackageRoot.path)
            .filter { ($0.hasPrefix("Sources/") || $0.hasPrefix("Tests/")) && $0.hasSuffix(".swift") }
        let declaration = #/\b(?:class|struct|enum|protocol|actor|typealias|func|var|let|case) (\w+)/#
        var declared: Set<String> = []
        for file in files {
            let text = try String(contentsOfFile: PackageRoot.path + "/" + file, encoding: .utf8)
            declared.formUnion(text.matches(of: declaration).map { String($0.1) })
        }
        let names = Set(files.map { String($0.split(separator: "/").last ?? "") })
        let rooms = Set(files.flatMap { $0.split(separator: "/").dropLast().map(String.init) })
        return (declared: declared, files: names, rooms: rooms, modules: try modules())
    }

    /// Every type and every member that the pages name in code exists in the sources.
    @Test("every type that the pages name exists", arguments: pages) func everyNameExists(_ page: String) throws {
        let text = try String(contentsOfFile: PackageRoot.path + "/" + page, encoding: .utf8)
        let (declared, files, rooms, modules) = try Self.sources.get()
        for match in text.matches(of: #/`([A-Z]\w+)(?:\.(\w+))?(?:\(.*?\))?`/#) {
            let (type, member) = (String(match.1), match.2.map(String.init))
            // Skip names of files, directories and modules, and names in capitals, which are commands or files of the
            // larder.
            let isOther = files.contains(type + ".swift") || rooms.contains(type) || modules.contains(type)
            if isOther || type == "Sendable" || type.allSatisfy({ $0.isUppercase || $0 == "_" }) { continue }
            let isDeclared = declared.contains(type) && member.map { declared.contains($0) || $0 == "swift" } ?? true
            #expect(isDeclared, "\(page): \(match.0)")
        }
        for match in text.matches(of: #/`([\w+]+\.swift)`/#) {
            #expect(files.contains(String(match.1)), "\(page): \(match.1)")
        }
    }
}
