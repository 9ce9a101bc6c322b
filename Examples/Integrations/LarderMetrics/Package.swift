// swift-tools-version: 6.2
// In your package, replace the path with the repository's URL.

import PackageDescription

let package = Package(
    name: "LarderMetrics",
    platforms: [.macOS(.v15)],
    products: [.library(name: "LarderMetrics", targets: ["LarderMetrics"])],
    dependencies: [
        .package(name: "Larder", path: "../../.."),
        .package(url: "https://github.com/apple/swift-metrics.git", from: "2.5.0"),
    ],
    targets: [
        .target(
            name: "LarderMetrics",
            dependencies: [
                .product(name: "LarderClient", package: "Larder"),
                .product(name: "Metrics", package: "swift-metrics"),
            ])
    ],
    swiftLanguageModes: [.v6]
)
