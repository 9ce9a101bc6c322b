// swift-tools-version: 6.2
// The manifest of a program that uses Larder. In your package, replace the path with the repository's URL.

import PackageDescription

let package = Package(
    name: "Minimal",
    platforms: [.macOS(.v15)],
    dependencies: [.package(name: "Larder", path: "../..")],
    targets: [
        .executableTarget(
            name: "minimal", dependencies: [.product(name: "Larder", package: "Larder")],
            path: ".", sources: ["main.swift"])
    ],
    swiftLanguageModes: [.v6]
)
