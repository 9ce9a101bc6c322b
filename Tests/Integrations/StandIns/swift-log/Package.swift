// swift-tools-version: 6.2

import PackageDescription

let package = Package(
    name: "swift-log",
    platforms: [.macOS(.v15)],
    products: [.library(name: "Logging", targets: ["Logging"])],
    targets: [.target(name: "Logging")]
)
