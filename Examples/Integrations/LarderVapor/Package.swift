// swift-tools-version: 6.2
// In your package, replace the path with the repository's URL.

import PackageDescription

let package = Package(
    name: "LarderVapor",
    platforms: [.macOS(.v15)],
    products: [.library(name: "LarderVapor", targets: ["LarderVapor"])],
    dependencies: [
        .package(name: "Larder", path: "../../.."),
        .package(url: "https://github.com/vapor/vapor.git", from: "4.110.0"),
    ],
    targets: [
        .target(
            name: "LarderVapor",
            dependencies: [
                .product(name: "LarderClient", package: "Larder"),
                .product(name: "Vapor", package: "vapor"),
            ])
    ],
    swiftLanguageModes: [.v6]
)
