import Foundation
import LarderTestSupport
import Testing

/// Tests of what the Swift Package Index and Xcode read: the index's settings, privacy manifests, the tutorial.
@Suite struct MetadataTests {
    @Test func theIndexBuildsTheDocumentationOfEachLibrary() throws {
        let settings = try DocsTests.read(".spi.yml")
        let manifest = try DocsTests.read("Package.swift")
        let libraries = manifest.matches(of: /\.library\(name: "(\w+)"/).map { String($0.output.1) }
        #expect(libraries.count == 3)
        #expect(settings.contains("documentation_targets: [\(libraries.joined(separator: ", "))]"))
    }

    @Test(
        "privacy manifests name the kinds of system calls that the libraries make",
        arguments: ["Larder", "LarderClient"])
    func privacyManifestsAreComplete(_ module: String) throws {
        let data = try Data(contentsOf: URL(filePath: "\(PackageRoot.path)/Sources/\(module)/PrivacyInfo.xcprivacy"))
        let list = try #require(try PropertyListSerialization.propertyList(from: data, format: nil) as? [String: Any])
        #expect(list["NSPrivacyTracking"] as? Bool == false)
        #expect((list["NSPrivacyCollectedDataTypes"] as? [Any])?.isEmpty == true)
        let calls = try #require(list["NSPrivacyAccessedAPITypes"] as? [[String: Any]])
        let kinds = calls.compactMap { $0["NSPrivacyAccessedAPIType"] as? String }
        let expected = ["NSPrivacyAccessedAPICategoryFileTimestamp", "NSPrivacyAccessedAPICategoryDiskSpace"]
        #expect(kinds == (module == "Larder" ? expected : Array(expected.prefix(1))))
        #expect(calls.allSatisfy { ($0["NSPrivacyAccessedAPITypeReasons"] as? [String])?.count == 1 })
    }

    // MARK: The tutorial

    private static let tutorials = "Sources/Larder/Larder.docc/Tutorials"

    @Test("the code of each step of the tutorial compiles", .timeLimit(.minutes(10)))
    func theTutorialCompiles() async throws {
        let page = try DocsTests.read(Self.tutorials + "/TenMinutes.tutorial")
        let steps = page.matches(of: /file: "([^"]+)"/).map { String($0.output.1) }
        let files = try FileManager.default.contentsOfDirectory(atPath: PackageRoot.path + "/\(Self.tutorials)/Code")
        #expect(steps.count >= 5 && steps == files.sorted())
        let place = try TemporaryDirectory()
        for step in steps {
            // Code outside of functions is allowed only in main.swift.
            try await ExampleProcess.shell(
                """
                mkdir -p '\(place.path)/\(step)' && cp '\(Self.tutorials)/Code/\(step)' '\(place.path)/\(step)/main.swift'
                maps=; for map in Sources/System/*/module.modulemap '\(DocsTests.products)'/*.build/module.modulemap; do
                maps="$maps -Xcc -fmodule-map-file=$map"; done
                swiftc -typecheck -warnings-as-errors -swift-version 6 -I '\(DocsTests.products)/Modules' $maps \
                '\(place.path)/\(step)/main.swift'
                """)
        }
    }

    @Test func eachStepOfTheTutorialExtendsThePreviousOne() throws {
        let names = ["tutorial-1-model", "tutorial-2-open", "tutorial-3-store"]
        let texts = try names.map { try DocsTests.read("\(Self.tutorials)/Code/\($0).swift") }
        #expect(texts[1].hasPrefix(texts[0]) && texts[2].hasPrefix(texts[1]))
    }
}
