import LarderCommandCatalog
import LarderPlatform
import LarderServer
import LarderTestSupport
import Testing

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Tests that the documentation agrees with the code.
@Suite struct DocsTests {
    /// The directory of the built programs, which also contains the test bundle.
    static let products: String = {
        let bundle = CommandLine.arguments.first { $0.hasSuffix(".xctest") } ?? CommandLine.arguments[0]
        return bundle.split(separator: "/").dropLast().reduce("") { $0 + "/" + $1 }
    }()

    static func read(_ path: String) throws -> String {
        try String(contentsOf: URL(filePath: PackageRoot.path + "/" + path), encoding: .utf8)
    }

    @Test(
        "generated pages are up to date",
        arguments: [
            ("Sources/packaging/larderd.conf", ConfigurationPage.sampleFile),
            ("Sources/packaging/man/larderd.8", DaemonManual.text),
            ("Sources/packaging/man/larder-protocol.7", ProtocolManual.text),
            ("Sources/packaging/completions/larderd.bash", DaemonOption.table.completion(for: "bash") ?? ""),
            ("Sources/packaging/completions/_larderd", DaemonOption.table.completion(for: "zsh") ?? ""),
            ("Sources/packaging/completions/larderd.fish", DaemonOption.table.completion(for: "fish") ?? ""),
        ])
    func pagesAreMadeFromTheTables(_ path: String, _ text: String) throws {
        if TestSetting.updateDocs.isSet {
            try text.write(to: URL(filePath: PackageRoot.path + "/" + path), atomically: true, encoding: .utf8)
        }
        #expect(try Self.read(path) == text, "run: make docs")
    }

    @Test("the table of options is up to date") func theTableOfOptionsIsMadeFromTheOptions() throws {
        let path = "docs/Operating.md"
        let parts = try Self.read(path).split(separator: /<!-- \/?options -->\n/, omittingEmptySubsequences: false)
        try #require(parts.count == 3)
        let text = parts[0] + "<!-- options -->\n" + ConfigurationPage.table + "<!-- /options -->\n" + parts[2]
        if TestSetting.updateDocs.isSet {
            try text.write(to: URL(filePath: PackageRoot.path + "/" + path), atomically: true, encoding: .utf8)
        }
        #expect(try Self.read(path) == text, "run: make docs")
    }

    @Test("the tables of docs/Protocol.md are up to date") func theTablesOfTheProtocolAreMadeFromTheTables() throws {
        let path = "docs/Protocol.md"
        var parts = try Self.read(path).components(separatedBy: "<!-- table: ")
        var tables = ProtocolTables.all
        for index in parts.indices.dropFirst() {
            let ends = parts[index].components(separatedBy: "<!-- /table -->")
            let name = try #require(parts[index].components(separatedBy: " -->\n").first)
            let removed = tables.removeValue(forKey: name)
            let table = try #require(removed, "there is no table \(name)")
            try #require(ends.count == 2, "\(name) has no end")
            parts[index] = "\(name) -->\n\(table)<!-- /table -->\(ends[1])"
        }
        #expect(tables.isEmpty, "the page lacks \(tables.keys.sorted())")
        let text = parts.joined(separator: "<!-- table: ")
        if TestSetting.updateDocs.isSet {
            try text.write(to: URL(filePath: PackageRoot.path + "/" + path), atomically: true, encoding: .utf8)
        }
        #expect(try Self.read(path) == text, "run: make docs")
    }

    /// The manual pages and completions are those that the programs print.
    @Test(arguments: [
        ("Sources/packaging/man/larderctl.1", ["larderctl", "help", "--man"]),
        ("Sources/packaging/completions/larderctl.bash", ["larderctl", "completion", "bash"]),
        ("Sources/packaging/completions/_larderctl", ["larderctl", "completion", "zsh"]),
        ("Sources/packaging/completions/larderctl.fish", ["larderctl", "completion", "fish"]),
        ("Sources/packaging/man/larderweb.8", ["larderweb", "--manual"]),
        ("Sources/packaging/completions/larderweb.bash", ["larderweb", "--completion", "bash"]),
        ("Sources/packaging/completions/_larderweb", ["larderweb", "--completion", "zsh"]),
        ("Sources/packaging/completions/larderweb.fish", ["larderweb", "--completion", "fish"]),
    ])
    func generatedFilesMatchThePrograms(_ path: String, _ words: [String]) throws {
        let (end, text, errors) = try ChildProcess.run("\(Self.products)/\(words[0])", Array(words.dropFirst()))
        #expect(end == .exited(0) && errors.isEmpty)
        if TestSetting.updateDocs.isSet {
            try text.write(to: URL(filePath: PackageRoot.path + "/" + path), atomically: true, encoding: .utf8)
        }
        #expect(try Self.read(path) == text, "run: make docs")
    }

    /// Every environment variable that the tests and the build read is documented, and every documented one is read.
    @Test func everyEnvironmentVariableOfTheTestsIsDocumented() throws {
        let page = try Self.read("docs/Testing.md")
        let documented = Set(page.matches(of: /\n\| `(LARDER_\w+)` \|/).map { String($0.output.1) })
        let package = try Self.read("Package.swift").matches(of: /environment\["(LARDER_\w+)"\]/)
        let known = Set(TestSetting.allCases.map(\.rawValue)).union(package.map { String($0.output.1) })
        #expect(documented == known, "\(documented.symmetricDifference(known).sorted())")
        for path in ["Makefile", "Tests/proofs.mk"] {
            for match in try Self.read(path).matches(of: /\b(LARDER_\w+)=/) {
                #expect(known.contains(String(match.output.1)), "\(path) sets \(match.output.1), which nothing reads")
            }
        }
        for path in SourceModule.paths(below: "Tests") where !path.hasSuffix("/TestSetting.swift") {
            let read = try Self.read(path).firstMatch(of: /getenv\("LARDER_|environment\["LARDER_\w+"\](?! = )/)
            #expect(read == nil, "\(path) reads the environment past TestSetting")
        }
    }

    /// A misspelt name of a test would leave the proof out of `make test` and `make proofs`.
    @Test func everyTestNamedInProofsMkExists() throws {
        let tests = try SourceModule.paths(below: "Tests").map(Self.read).joined()
        var count = 0
        for line in try Self.read("Tests/proofs.mk").matches(of: /(?m)^PROOF_[a-z]+ = (.+)$/) {
            for name in line.output.1.split(separator: " ") {
                let parts = name.split(separator: "/")
                let isSuite = ["struct", "final class"].contains { tests.contains("\($0) \(parts[0]) {") }
                #expect(isSuite, "there is no suite \(parts[0])")
                if parts.count == 2 { #expect(tests.contains("func \(parts[1])("), "there is no test \(parts[1])") }
                count += 1
            }
        }
        #expect(count > 15)
    }

    @Test("every command has a summary, a reply and a complexity") func everyCommandHasAllItsTexts() {
        for spec in CommandMetadata.withSubcommands {
            #expect(!spec.summary.isEmpty && !spec.reply.isEmpty && !spec.complexity.isEmpty, "\(spec.name)")
            #expect(spec.summary.last == "." || spec.summary.hasSuffix(")."), "\(spec.name): summary is a sentence")
            #expect(spec.name == spec.name.lowercased())
        }
    }

    /// Code outside the command table must not compare command names: all properties of a command are in its row. It
    /// may name commands only to send them.
    @Test("only the command catalog compares command names") func onlyTheCatalogComparesCommandNames() throws {
        #expect(Self.namedCommands(in: "if word == \"SELECT\" {}\ncase \"MULTI\": break").count == 2)
        #expect(Self.namedCommands(in: "let all = [\n    \"AUTH\", \"FROB\",\n    \"HELLO\",\n]").count == 1)
        #expect(Self.namedCommands(in: "send([\"CLIENT\", \"TRACKING\", \"ON\"])").isEmpty)
        for path in SourceModule.paths(below: "Sources")
        // The words of a query are not names of commands.
        where !path.contains("/LarderCommandCatalog/") && !path.contains("/LarderQueries/")
            && !path.hasSuffix("/Verbs/Query.swift")
        {
            let found = Self.namedCommands(in: try Self.read(path))
            #expect(found.isEmpty, "\(path): \(found)")
        }
    }

    /// Finds comparisons with names of commands, and lists of them.
    private static func namedCommands(in text: String) -> [Substring] {
        let comparisons = text.matches(of: /(?:==|!=|\bcase|contains\() ?"([A-Z-]+)"|"([A-Z-]+)" (?:==|!=)/)
            .filter { CommandMetadata.named(String($0.output.1 ?? $0.output.2 ?? "")) != nil }.map(\.output.0)
        let lists = text.matches(of: /(?:"[A-Za-z-]+",\s*){2,}"[A-Za-z-]+"/).filter { list in
            list.output.matches(of: /"([A-Za-z-]+)"/).count { CommandMetadata.named(String($0.output.1)) != nil } > 1
        }.map(\.output)
        return comparisons + lists
    }
}
