import LarderServer
import LarderTestSupport
import Testing

/// Tests that the examples for containers in docs/Operating.md are valid YAML, and match the options of larderd and the
/// image of `make image`.
@Suite struct ContainerDocsTests {
    /// Prints the values in the documents of a file, one per line. An invalid document is an error.
    private static let reader = """
        import sys, yaml
        def show(node):
            for value in node.values() if isinstance(node, dict) else node if isinstance(node, list) else []:
                show(value)
            if not isinstance(node, (dict, list)):
                print(node)
        with open(sys.argv[1]) as file:
            for document in yaml.safe_load_all(file):
                show(document)
        """

    private static func values() throws -> [String] {
        let page = try DocsTests.read("docs/Operating.md")
        let examples = page.matches(of: /(?s)\n```yaml\n(.*?)```/).map { String($0.output.1) }
        #expect(examples.count > 3, "compose, sidecar, daemon set, and the scrape configuration of Prometheus")
        let place = try TemporaryDirectory()
        let file = place.path + "/examples.yaml"
        try Files.write(file, Array(examples.joined(separator: "---\n").utf8))
        let (end, output, errors) = try ChildProcess.run("/usr/bin/python3", ["-c", reader, file])
        try #require(end == .exited(0), "`make test` installs Debian's package python3-yaml: \(errors)")
        return output.split(separator: "\n").map(String.init)
    }

    @Test func theExamplesNameExistingOptions() throws {
        let options = try Self.values().filter { $0.hasPrefix("--") }
        #expect(options.count > 2)
        for option in options {
            #expect(throws: Never.self, "\(option)") { _ = try DaemonCommandLine([option]) }
        }
    }

    @Test func theExamplesNameThePathsAndTheUserOfTheImage() throws {
        let script = try DocsTests.read("Sources/packaging/make-image.sh")
        let values = try Self.values()
        let paths = Set(values.flatMap { $0.matches(of: /\/(run|var)\/[a-z.\/]+/) }.map { String($0.output.0) })
        #expect(
            paths == [
                "/run/larder", "/run/larder/larder.sock", "/var/cache/larder", "/var/cache/larder/data",
                "/var/lib/larder/run",
            ])
        for text in ["LARDER_SOCKET=/run/larder/larder.sock", "--volume /var/cache/larder --volume /run/larder"] {
            #expect(script.contains(text))
        }
        let users = Set(values.filter { $0.wholeMatch(of: /[0-9]{5}/) != nil })
        #expect(users == ["10001"] && script.contains("\nuser=10001\n"))
    }
}
