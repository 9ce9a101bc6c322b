// swift-tools-version: 6.2
// A separate package that uses Larder as yours would. In your package, replace the path with the repository's URL.

import PackageDescription

let package = Package(
    name: "PackageCatalog",
    platforms: [.macOS(.v15)],
    dependencies: [.package(name: "Larder", path: "../..")],
    targets: [
        .target(name: "PackageRecords"),
        .executableTarget(
            name: "package-catalog",
            dependencies: [
                "PackageRecords",
                .product(name: "Larder", package: "Larder"),
                .product(name: "LarderClient", package: "Larder"),
            ]),
        .testTarget(
            name: "PackageRecordsTests", dependencies: ["PackageRecords"], resources: [.copy("Fixtures")]),
    ],
    swiftLanguageModes: [.v6]
)
