// swift-tools-version: 6.2
// In your package, replace the path with the repository's URL.

import PackageDescription

let package = Package(
    name: "LarderHummingbird",
    platforms: [.macOS(.v15)],
    products: [.library(name: "LarderHummingbird", targets: ["LarderHummingbird"])],
    dependencies: [
        .package(name: "Larder", path: "../../.."),
        .package(url: "https://github.com/hummingbird-project/hummingbird.git", from: "2.5.0"),
    ],
    targets: [
        .target(
            name: "LarderHummingbird",
            dependencies: [
                .product(name: "LarderClient", package: "Larder"),
                .product(name: "Hummingbird", package: "hummingbird"),
            ])
    ],
    swiftLanguageModes: [.v6]
)
