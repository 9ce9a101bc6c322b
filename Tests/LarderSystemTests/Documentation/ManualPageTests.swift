import LarderServer
import LarderTestSupport
import Testing

/// Tests that the manual pages are valid input for their formatter.
@Suite struct ManualPageTests {
    @Test(arguments: [
        (
            "larderctl.1",
            ["NAME", "SYNOPSIS", "DESCRIPTION", "VERBS", "OPTIONS", "EXIT STATUS", "ENVIRONMENT", "SEE ALSO"]
        ),
        ("larderweb.8", ["NAME", "OPTIONS", "ACCESS", "EXIT STATUS", "FILES", "SEE ALSO"]),
        ("larder-protocol.7", ["NAME", "DESCRIPTION", "COMMANDS: STRING", "COMMANDS: LARDER", "SEE ALSO"]),
    ])
    func otherManualPagesAreFormattedWithoutWarning(_ name: String, _ sections: [String]) throws {
        let page = Array(try DocsTests.read("Sources/packaging/man/\(name)").utf8)
        let (end, output, errors) = try ChildProcess.run("groff", ["-man", "-ww", "-Tutf8"], input: page)
        #expect(end == .exited(0) && errors == "", "\(errors)")
        let text = output.replacing(/.\u{8}/, with: "")
        for section in sections { #expect(text.contains("\n\(section)\n"), "\(section)") }
    }

    @Test func theManualPageOfLarderdIsFormattedWithoutWarning() throws {
        let page = Array(DaemonManual.text.utf8)
        let (end, output, errors) = try ChildProcess.run("groff", ["-man", "-ww", "-Tutf8"], input: page)
        #expect(end == .exited(0) && errors == "", "\(errors)")
        // Remove the overstrikes of bold and underlined letters.
        let text = output.replacing(/.\u{8}/, with: "")
        for option in DaemonOption.all { #expect(text.contains(option.usage), "\(option.usage)") }
        for section in ["NAME", "SYNOPSIS", "OPTIONS", "CONFIGURATION FILE", "SIGNALS", "EXIT STATUS", "FILES"] {
            #expect(text.contains("\n\(section)\n"), "\(section)")
        }
    }
}
