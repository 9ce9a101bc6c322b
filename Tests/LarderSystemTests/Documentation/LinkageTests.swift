import Foundation
import Testing

/// Tests that a program links only the libraries that it needs. Scripts start larderctl frequently, even on machines
/// without a daemon.
@Suite struct LinkageTests {
    private static let libraries = ["libleveldb", "libsnappy", "libuv", "libxxhash", "liblua5.1", "libmd"]

    /// The libraries that a program requires at load time.
    private func libraries(of program: String) throws -> [String] {
        let bytes = try Data(contentsOf: URL(filePath: DocsTests.products + "/" + program))
        return Self.libraries.filter { bytes.range(of: Data(($0 + ".").utf8)) != nil }
    }

    @Test func larderctlLinksNoneOfTheDaemonsLibraries() throws {
        #expect(try libraries(of: "larderd") == Self.libraries, "this test would not find them")
        #expect(try libraries(of: "larderctl").isEmpty)
    }

    /// larderweb has its own larder, but contains no other part of the daemon.
    @Test("larderweb links only the engine's libraries") func larderwebLinksOnlyTheLibrariesOfTheEngine() throws {
        #expect(try libraries(of: "larderweb") == ["libleveldb", "libsnappy"])
    }
}
