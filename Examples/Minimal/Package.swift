// swift-tools-version: 6.2
// All that a program needs to use Larder. Yours names the repository in place of the path.

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
