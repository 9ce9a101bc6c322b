import Foundation
import LarderTestSupport
import Testing

/// Tests that docs/Clients.md names the programs that were run.
@Suite struct ClientsPageTests {
    @Test func everyProgramOfThePageExists() throws {
        let page = try DocsTests.read("docs/Clients.md")
        let named = Set(page.matches(of: /`([a-z_]+\.(?:py|php|js|rb|pl|c))`/).map { String($0.output.1) })
        #expect(named.count > 15)
        let existing = Set(try FileManager.default.contentsOfDirectory(atPath: ClientProgram.directory))
        #expect(named.subtracting(existing) == [])
    }

    /// A table says of each library in which version and by what it was run.
    @Test func everyLibraryOfTheTablesWasRun() throws {
        let page = try DocsTests.read("docs/Clients.md")
        let tables = try #require(page.firstRange(of: "## What does not work")).lowerBound
        let rows = page[..<tables].split(separator: "\n")
            .filter { $0.hasPrefix("| ") && !$0.hasSuffix("| run |") && !$0.hasPrefix("|---") }
        #expect(rows.count > 40)
        for row in rows {
            let cells = row.split(separator: " | ")
            #expect(row.hasSuffix("| manually |") || cells.last?.contains("`") == true, "\(row)")
        }
    }
}
