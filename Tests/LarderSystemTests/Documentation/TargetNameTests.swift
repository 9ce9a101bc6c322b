import LarderTestSupport
import Testing

/// Tests of the names of the package's targets. Another package that has a target of the same name cannot depend on
/// this package.
@Suite struct TargetNameTests {
    @Test("every target's name begins with Larder, larder or CLarder") func targetsHaveAPrefix() throws {
        let package = try String(decoding: Files.read(PackageRoot.path + "/Package.swift"), as: UTF8.self)
        let target =
            /\.(?:target|testTarget|executableTarget|systemLibrary|plugin|macro|binaryTarget)\(\s*name:\s*"([^"]+)"/
        let names = package.matches(of: target).map { String($0.1) }
        // The pattern finds every target.
        let kinds = /\.(?:target|testTarget|executableTarget|systemLibrary|plugin|macro|binaryTarget)\(/
        #expect(names.count == package.matches(of: kinds).count && names.count > 40)
        // The targets of the tour exist only if LARDER_TOUR is set, so users' package graphs do not contain them.
        let tour = ["PackageRecords", "package-catalog"]
        let others = names.filter { name in
            !tour.contains(name) && !["Larder", "larder", "CLarder"].contains { name.hasPrefix($0) }
        }
        #expect(others == [])
    }
}
