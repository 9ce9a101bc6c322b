// swift-tools-version: 6.2
// In your package, replace the path with the repository's URL.

import PackageDescription

let package = Package(
    name: "LarderServiceLifecycle",
    platforms: [.macOS(.v15)],
    products: [.library(name: "LarderServiceLifecycle", targets: ["LarderServiceLifecycle"])],
    dependencies: [
        .package(name: "Larder", path: "../../.."),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle.git", from: "2.6.0"),
    ],
    targets: [
        .target(
            name: "LarderServiceLifecycle",
            dependencies: [
                .product(name: "Larder", package: "Larder"),
                .product(name: "LarderClient", package: "Larder"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
            ])
    ],
    swiftLanguageModes: [.v6]
)
