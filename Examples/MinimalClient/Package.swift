// swift-tools-version: 6.2
// All that a program needs to use a larder through larderd. Yours names the repository in place of the path.

import PackageDescription

let package = Package(
    name: "MinimalClient",
    platforms: [.macOS(.v15)],
    dependencies: [.package(name: "Larder", path: "../..")],
    targets: [
        .executableTarget(
            name: "minimal-client", dependencies: [.product(name: "LarderClient", package: "Larder")],
            path: ".", sources: ["main.swift"])
    ],
    swiftLanguageModes: [.v6]
)
