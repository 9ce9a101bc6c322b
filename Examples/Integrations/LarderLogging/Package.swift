// swift-tools-version: 6.2
// In your package, replace the path with the repository's URL.

import PackageDescription

let package = Package(
    name: "LarderLogging",
    platforms: [.macOS(.v15)],
    products: [.library(name: "LarderLogging", targets: ["LarderLogging"])],
    dependencies: [
        .package(name: "Larder", path: "../../.."),
        .package(url: "https://github.com/apple/swift-log.git", from: "1.6.0"),
    ],
    targets: [
        .target(
            name: "LarderLogging",
            dependencies: [
                .product(name: "LarderClient", package: "Larder"),
                .product(name: "Logging", package: "swift-log"),
            ])
    ],
    swiftLanguageModes: [.v6]
)
