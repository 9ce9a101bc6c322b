import LarderPlatform
import LarderTestSupport
import Testing

@testable import larderbench

/// Tests that docs/Origins.md contains the program's current output for a thousand machines.
@Suite struct FleetDocsTests {
    private static let path = PackageRoot.path + "/docs/Origins.md"

    @Test("docs/Origins.md has the current output of larderbench fleet")
    func theOriginsPageHasTheCurrentOutput() throws {
        let page = String(decoding: try Files.read(Self.path), as: UTF8.self)
        var wanted = page
        var inputs = FleetInputs()
        inputs.machines = [1_000]
        for (name, text) in [("fleet", FleetReport(inputs: inputs).text), ("check", FleetCheck.text)] {
            let start = try #require(wanted.firstRange(of: "<!-- \(name): begin -->\n")?.upperBound)
            let stop = try #require(wanted.firstRange(of: "<!-- \(name): end -->")?.lowerBound)
            wanted = wanted[..<start] + text + wanted[stop...]
        }
        if TestSetting.updateDocs.isSet { try Files.write(Self.path, Array(wanted.utf8)) }
        #expect(TestSetting.updateDocs.isSet || page == wanted, "run: make docs")
    }
}
