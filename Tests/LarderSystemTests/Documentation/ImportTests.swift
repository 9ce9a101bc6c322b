import Foundation
import LarderTestSupport
import Testing

/// Tests of the declarations that are visible to a program that imports only the library or only the client.
@Suite struct ImportTests {
    /// Returns whether a program compiles, and the compiler's messages.
    private func compile(_ source: String) async throws -> ExampleProcess.Result {
        let directory = try TemporaryDirectory()
        try source.write(toFile: directory.path + "/main.swift", atomically: true, encoding: .utf8)
        let products = DocsTests.products
        // The C modules that SwiftPM makes visible to dependent packages: the modules that it compiles, and system
        // modules.
        let all = try FileManager.default.contentsOfDirectory(atPath: "\(PackageRoot.path)/Sources/System")
        let sources = all.filter { $0.hasPrefix("C") }.map { "-I \(PackageRoot.path)/Sources/System/\($0)" }
        let maps = all.map { "\(products)/\($0).build/module.modulemap" }
            .filter(FileManager.default.fileExists(atPath:)).map { "-Xcc -fmodule-map-file=\($0)" }
        return try await ExampleProcess.run(
            "swiftc -swift-version 6 -typecheck -I \(products)/Modules \((maps + sources).joined(separator: " ")) "
                + "main.swift",
            directory: directory.path)
    }

    @Test(
        "importing Larder does not import the C library",
        arguments: [
            ("Larder", "print(Cache.standardName, LarderError.self, Durability.os, EntryPolicy.seconds(5), Codec.raw)"),
            (
                "LarderClient",
                "print(LarderClient.self, LarderClientError.self, EntryPolicy.seconds(5), RESPValue.null)"
            ),
        ])
    func importingLarderDoesNotImportTheCLibrary(module: String, use: String) async throws {
        let good = try await compile("import \(module)\n\(use)\n")
        #expect(good.exitCode == 0, "\(good.errors)")
        let result = try await compile(
            "import \(module)\nprint(getpid())\nprint(malloc(1))\nprint(open(\"x\", 0))\nprint(errno)\n")
        for name in ["getpid", "malloc", "open", "errno"] {
            #expect(result.errors.contains("cannot find '\(name)' in scope"), "\(name): \(result.errors)")
        }
    }
}
