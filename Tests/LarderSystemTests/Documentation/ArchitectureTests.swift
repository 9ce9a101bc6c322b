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

    /// A chain of calls in docs/Architecture.md: the functions that a request passes through, in order, each with its
    /// file. Consecutive functions of one file form a step.
    private struct Chain {
        let name: String
        let steps: [(file: String, functions: [String])]

        var functions: [String] { steps.flatMap { step in step.functions.map { "\(step.file): \($0)" } } }
        var files: Set<String> { Set(steps.map(\.file)) }
    }

    /// The maximum number of functions and files of each chain. Lower these numbers when a chain gets shorter.
    private static let chainLimits: [String: (functions: Int, files: Int)] = [
        "Hot GET": (12, 8), "Cold GET": (18, 12), "SET": (16, 10), "Cache.set": (14, 10),
    ]

    private static func chains() throws -> [Chain] {
        let page = try String(contentsOfFile: PackageRoot.path + "/docs/Architecture.md", encoding: .utf8)
        let section = try #require(
            page.firstMatch(of: #/(?s)\n### Function by function\n(.*?)\n## /#), "the section is missing")
        var chains: [Chain] = []
        for match in section.1.matches(of: #/\n\*\*`?(.+?)`?\*\*([^\n]*)\n\n((?:[- ] [^\n]+\n)+)/#) {
            var steps = match.3.replacing("\n  ", with: " ").matches(of: #/- `([\w+]+\.swift)`: ([^\n]+)/#).map {
                (file: String($0.1), functions: $0.2.matches(of: #/`([\w.]+)`/#).map { String($0.1) })
            }
            if let last = match.2.firstMatch(of: #/as a hot GET up to `([\w.]+)`/#)?.1, let hot = chains.first {
                let end = try #require(hot.steps.firstIndex { $0.functions.contains(String(last)) })
                steps.insert(contentsOf: hot.steps[...end], at: 0)
            }
            chains.append(Chain(name: String(match.1), steps: steps))
        }
        return chains
    }

    /// Each function exists in its file, and is called in the file of an earlier one.
    @Test func theChainsOfCallsExistAndStayShort() throws {
        let chains = try Self.chains()
        #expect(Set(chains.map(\.name)) == Set(Self.chainLimits.keys))
        let paths = try FileManager.default.subpathsOfDirectory(atPath: PackageRoot.path + "/Sources")
        for chain in chains {
            var callers = ""
            for (file, functions) in chain.steps {
                let texts = try paths.filter { $0.hasSuffix("/" + file) }.map {
                    try String(contentsOfFile: PackageRoot.path + "/Sources/" + $0, encoding: .utf8)
                }
                for function in functions {
                    let parts = function.split(separator: ".")
                    try #require(parts.count == 2, "\(function)")
                    let (type, name) = (parts[0], parts[1])
                    let declarations = name == "init" ? ["init(", "init<"] : ["func \(name)(", "func \(name)<"]
                    let text = texts.first { text in
                        ["class", "struct", "enum", "extension"].contains { text.contains("\($0) \(type)") }
                            && declarations.contains { text.contains($0) }
                    }
                    let code = try #require(text, "\(chain.name): \(function) is not in \(file)")
                    if callers.isEmpty { callers = code }
                    let called = name == "init" ? type : name
                    let others = callers.replacing("func \(called)", with: "")
                    let isCalled = [".", " ", "("].contains { others.contains($0 + called + "(") }
                    #expect(isCalled || others.contains(called + " {"), "\(chain.name): nothing calls \(function)")
                    callers += code
                }
            }
            let most = try #require(Self.chainLimits[chain.name])
            print("\(chain.name): \(chain.functions.count) functions in \(chain.files.count) files, at most \(most)")
            #expect(Set(chain.functions).count == chain.functions.count, "\(chain.name) lists a function twice")
            #expect(chain.functions.count <= most.functions && chain.files.count <= most.files, "\(chain.name)")
        }
    }

    /// Draws the chains side by side.
    @Test func theDiagramOfTheChainsMatchesTheirLists() throws {
        var lines: [String] = []
        for (index, chain) in try Self.chains().enumerated() {
            lines.append("    subgraph cluster_\(index) {")
            lines.append("        label=\"\(chain.name)\"")
            for (number, step) in chain.steps.enumerated() {
                let label = (step.functions + [step.file]).joined(separator: "\\n")
                lines.append("        c\(index)_\(number) [label=\"\(label)\"]")
                if number > 0 { lines.append("        c\(index)_\(number - 1) -> c\(index)_\(number)") }
            }
            lines.append("    }")
        }
        let text = """
            // Made of docs/Architecture.md by ArchitectureTests: run `make docs`.
            digraph chains {
                graph [rankdir=TB, nodesep=0.2, ranksep=0.2, fontname="Helvetica", fontsize=12, bgcolor="white"]
                node [shape=box, style="rounded,filled", fillcolor="#f4f4f4", fontname="Helvetica", fontsize=10]
                edge [color="#555555", arrowsize=0.6]
            \(lines.joined(separator: "\n"))
            }

            """
        let path = Self.directory + "/chains.dot"
        if Self.isUpdating { try text.write(toFile: path, atomically: true, encoding: .utf8) }
        #expect(try String(contentsOfFile: path, encoding: .utf8) == text, "run: make docs")
    }

    /// Returns the words in a diagram, regardless of the version of Graphviz that has drawn it.
    private static func words(_ svg: String) -> [String] {
        svg.replacing("&#45;", with: "-").matches(of: #/<text[^>]*>([^<]*)</text>/#).map { String($0.1) }.sorted()
    }

    /// Draws each source with Graphviz, and compares the words with the stored diagram.
    @Test func everyDiagramMatchesItsSource() async throws {
        if Self.isUpdating {
            try theModulesAreThePackages()
            try theDiagramOfTheChainsMatchesTheirLists()
        }
        let page = try ["Architecture", "Freshness"].map { name in
            try String(contentsOfFile: PackageRoot.path + "/docs/\(name).md", encoding: .utf8)
        }.joined()
        let files = try FileManager.default.contentsOfDirectory(atPath: Self.directory)
        let sources = files.filter { $0.hasSuffix(".dot") }
        #expect(sources.count == 8)
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
            let isKnown = { (name: String) in declared.contains(name) || name == "init" || name == "swift" }
            let isDeclared = declared.contains(type) && member.map(isKnown) ?? true
            #expect(isDeclared, "\(page): \(match.0)")
        }
        for match in text.matches(of: #/`([\w+]+\.swift)`/#) {
            #expect(files.contains(String(match.1)), "\(page): \(match.1)")
        }
    }
}
