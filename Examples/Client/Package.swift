// swift-tools-version: 6.2
// All that a program needs to use a larder through larderd. Yours names the repository in place of the path.

import PackageDescription

let package = Package(
    name: "Client",
    platforms: [.macOS(.v15)],
    dependencies: [.package(name: "Larder", path: "../..")],
    targets: [
        .executableTarget(
            name: "client", dependencies: [.product(name: "LarderClient", package: "Larder")],
            path: ".", sources: ["main.swift"])
    ],
    swiftLanguageModes: [.v6]
)
