// swift-tools-version: 6.2

import PackageDescription

let package = Package(
    name: "vapor",
    platforms: [.macOS(.v15)],
    products: [.library(name: "Vapor", targets: ["Vapor"])],
    targets: [.target(name: "Vapor")]
)
