// swift-tools-version: 6.2

import PackageDescription

let package = Package(
    name: "swift-service-lifecycle",
    platforms: [.macOS(.v15)],
    products: [.library(name: "ServiceLifecycle", targets: ["ServiceLifecycle"])],
    dependencies: [.package(url: "https://github.com/apple/swift-log.git", from: "1.6.0")],
    targets: [.target(name: "ServiceLifecycle", dependencies: [.product(name: "Logging", package: "swift-log")])]
)
