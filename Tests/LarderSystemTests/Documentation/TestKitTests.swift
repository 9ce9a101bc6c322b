import LarderTestSupport
import Testing

/// Tests that there is one helper for each purpose: docs/Testing.md lists all of them, and no test defines its own
/// copy.
@Suite struct TestKitTests {
    /// Returns the names of the test kit's public declarations.
    private static func helpers() throws -> [String] {
        try SourceModule.paths(below: "Tests").filter { $0.hasPrefix("Tests/LarderTestSupport/") }.flatMap { path in
            try DocsTests.read(path).matches(of: /(?m)^package (?:final )?(?:class|struct|enum|func) (\w+)/)
                .map { String($0.output.1) }
        }
    }

    @Test("docs/Testing.md lists every test helper") func theTestingPageListsEveryHelper() throws {
        let page = try DocsTests.read("docs/Testing.md")
        let helpers = try Self.helpers()
        #expect(helpers.count > 15)
        for name in Set(helpers) { #expect(page.contains("`\(name)`"), "\(name) is not in docs/Testing.md") }
    }

    @Test func noTestHelperIsDefinedTwice() throws {
        let helpers = Set(try Self.helpers())
        // Skip the benchmark, a program that does not use the test kit.
        for path in SourceModule.paths(below: "Tests")
        where !path.hasPrefix("Tests/LarderTestSupport/") && !path.hasPrefix("Tests/Benchmarks/larderbench/") {
            for match in try DocsTests.read(path).matches(of: /\b(?:class|struct|enum|actor) (\w+)/) {
                #expect(!helpers.contains(String(match.output.1)), "\(path) has a \(match.output.1) of its own")
            }
        }
    }

    /// The defects that `make planted` plants must refer to the present code.
    @Test func allDefectsOfTheMutationTestsCanBeInserted() throws {
        let (end, text, errors) = try ChildProcess.run(
            "/usr/bin/python3", [PackageRoot.path + "/Tests/Planted/planted.py", "--check"])
        #expect(end == .exited(0), "\(text)\(errors)")
    }
}
