// swift-tools-version: 6.2
// A program that uses all integrations. build.sh copies this package to a place three directories below Larder's.

import PackageDescription

let packages = ["LarderLogging", "LarderMetrics", "LarderServiceLifecycle", "LarderHummingbird", "LarderVapor"]

let package = Package(
    name: "Exercise",
    platforms: [.macOS(.v15)],
    dependencies: [
        .package(name: "Larder", path: "../../.."),
        .package(url: "https://github.com/apple/swift-log.git", from: "1.6.0"),
        .package(url: "https://github.com/apple/swift-metrics.git", from: "2.5.0"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle.git", from: "2.6.0"),
        .package(url: "https://github.com/hummingbird-project/hummingbird.git", from: "2.5.0"),
        .package(url: "https://github.com/vapor/vapor.git", from: "4.110.0"),
    ] + packages.map { .package(name: $0, path: "../../../Examples/Integrations/" + $0) },
    targets: [
        .executableTarget(
            name: "exercise",
            dependencies: [
                .product(name: "Larder", package: "Larder"),
                .product(name: "LarderClient", package: "Larder"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "Metrics", package: "swift-metrics"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
                .product(name: "Hummingbird", package: "hummingbird"),
                .product(name: "Vapor", package: "vapor"),
            ] + packages.map { .product(name: $0, package: $0) }, path: ".", sources: ["main.swift"])
    ],
    swiftLanguageModes: [.v6]
)
