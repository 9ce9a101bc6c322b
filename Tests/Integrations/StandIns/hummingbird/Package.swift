// swift-tools-version: 6.2

import PackageDescription

let package = Package(
    name: "hummingbird",
    platforms: [.macOS(.v15)],
    products: [.library(name: "Hummingbird", targets: ["Hummingbird"])],
    dependencies: [.package(url: "https://github.com/swift-server/swift-service-lifecycle.git", from: "2.6.0")],
    targets: [
        .target(
            name: "Hummingbird", dependencies: [.product(name: "ServiceLifecycle", package: "swift-service-lifecycle")])
    ]
)
