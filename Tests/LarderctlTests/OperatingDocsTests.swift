import LarderTestSupport
import Testing

@testable import larderctl

/// Tests that the table of findings in docs/Operating.md matches the rules of `larderctl doctor`.
@Suite struct OperatingDocsTests {
    @Test func theTableOfDoctorsFindingsIsUpToDate() throws {
        let path = PackageRoot.path + "/docs/Operating.md"
        let page = String(decoding: try Files.read(path), as: UTF8.self)
        let parts = page.split(separator: /<!-- \/?doctor -->\n/, omittingEmptySubsequences: false)
        try #require(parts.count == 3)
        let made = parts[0] + "<!-- doctor -->\n" + DoctorRule.table + "<!-- /doctor -->\n" + parts[2]
        if TestSetting.updateDocs.isSet { try Files.write(path, Array(made.utf8)) }
        #expect(String(decoding: try Files.read(path), as: UTF8.self) == made, "run: make docs")
    }
}
