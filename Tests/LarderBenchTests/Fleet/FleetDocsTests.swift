import LarderPlatform
import LarderTestSupport
import Testing

@testable import larderbench

/// docs/Fleet.md has what the program prints.
@Suite struct FleetDocsTests {
    private static let path = PackageRoot.path + "/docs/Fleet.md"

    @Test func thePageHasTheTablesOfTheProgram() throws {
        let page = String(decoding: try Files.read(Self.path), as: UTF8.self)
        var wanted = page
        for (name, text) in [("fleet", FleetReport(inputs: FleetInputs()).text), ("check", FleetCheck.text)] {
            let start = try #require(wanted.firstRange(of: "<!-- \(name): begin -->\n")?.upperBound)
            let stop = try #require(wanted.firstRange(of: "<!-- \(name): end -->")?.lowerBound)
            wanted = wanted[..<start] + text + wanted[stop...]
        }
        if TestSetting.updateDocs.isSet { try Files.write(Self.path, Array(wanted.utf8)) }
        #expect(TestSetting.updateDocs.isSet || page == wanted, "run: make docs")
    }
}
