import Foundation
import Testing

/// A program has the libraries that it needs, and no others: scripts start larderctl again and again, on machines too that have
/// no daemon.
@Suite struct LinkageTests {
    private static let libraries = ["libleveldb", "libsnappy", "libuv", "libxxhash", "liblua5.1", "libmd"]

    /// The libraries that a program names to the loader.
    private func libraries(of program: String) throws -> [String] {
        let bytes = try Data(contentsOf: URL(filePath: DocsTests.products + "/" + program))
        return Self.libraries.filter { bytes.range(of: Data(($0 + ".").utf8)) != nil }
    }

    @Test func larderctlLinksNoneOfTheDaemonsLibraries() throws {
        #expect(try libraries(of: "larderd") == Self.libraries, "this test would not find them")
        #expect(try libraries(of: "larderctl").isEmpty)
    }

    /// It has its own larder, and otherwise no part of the daemon.
    @Test func larderwebLinksTheEngineAlone() throws {
        #expect(try libraries(of: "larderweb") == ["libleveldb", "libsnappy"])
    }
}
