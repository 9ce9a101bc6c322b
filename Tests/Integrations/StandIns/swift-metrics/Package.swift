// swift-tools-version: 6.2

import PackageDescription

let package = Package(
    name: "swift-metrics",
    platforms: [.macOS(.v15)],
    products: [.library(name: "Metrics", targets: ["Metrics"])],
    targets: [.target(name: "Metrics")]
)
