// swift-tools-version: 6.2
// Larder: a cache that the processes of one machine share, kept in LevelDB.
//
// LevelDB, snappy, libuv, xxHash, Lua, libmd, OpenSSL, libedit and libmicrohttpd come from the system: Debian's
// libleveldb-dev, libsnappy-dev, libuv1-dev, libxxhash-dev, liblua5.1-0-dev, lua-cjson-dev, lua-bitop-dev, libmd-dev,
// libssl-dev, libedit-dev and libmicrohttpd-dev (installed by `make deps`), or Homebrew's leveldb, snappy, libuv, xxhash,
// lua@5.1, libmd, openssl@3, libedit and libmicrohttpd. On Linux the daemon takes its
// memory from libjemalloc-dev, unless LARDER_SYSTEM_MALLOC is set.

import PackageDescription

#if os(macOS)
    // Homebrew on Apple silicon lives outside the compiler's default search path, and LevelDB has no pkg-config file.
    let homebrewCompile: [SwiftSetting] = [.unsafeFlags(["-Xcc", "-I/opt/homebrew/include"])]
    let homebrewCXX: [CXXSetting] = [.unsafeFlags(["-I/opt/homebrew/include"])]
    let homebrewLink: [LinkerSetting] = [.unsafeFlags(["-L/opt/homebrew/lib"])]
#else
    let homebrewCompile: [SwiftSetting] = []
    let homebrewCXX: [CXXSetting] = []
    let homebrewLink: [LinkerSetting] = []
#endif

// Set by the Makefile. Not the default, so that a newer compiler's new warning never breaks somebody's dependency.
let strict: [SwiftSetting] =
    Context.environment["LARDER_STRICT"] == nil ? [] : [.treatAllWarnings(as: .error)]

let settings: [SwiftSetting] = [.enableUpcomingFeature("ExistentialAny")] + homebrewCompile + strict

#if os(Linux)
    let usesJemalloc = Context.environment["LARDER_SYSTEM_MALLOC"] == nil
#else
    let usesJemalloc = false
#endif
let allocatorTargets: [Target] =
    usesJemalloc
    ? [
        .target(
            name: "CLarderAllocator", path: "Sources/System/CLarderAllocator",
            linkerSettings: [.linkedLibrary("jemalloc")])
    ] : []

// The tour's program as a part of this package: one build makes all that `make run` shows, and compiles the engine once.
// Otherwise Examples/PackageCatalog is a package of its own, which cannot depend on one with targets of the same names.
let tourTargets: [Target] =
    Context.environment["LARDER_TOUR"] == nil
    ? []
    : [
        .target(name: "PackageRecords", path: "Examples/PackageCatalog/Sources/PackageRecords"),
        .executableTarget(
            name: "package-catalog",
            dependencies: ["PackageRecords", "Larder", "LarderClient", "larderd", "larderctl"],
            path: "Examples/PackageCatalog/Sources/package-catalog"),
    ]

// The benchmark, which uses declarations that are visible within the package only: `make bench` builds it.
let benchTargets: [Target] =
    Context.environment["LARDER_BENCH"] == nil
    ? []
    : [
        .executableTarget(
            name: "larderbench",
            dependencies: [
                "CLarderLevelDB", "CLarderUV", "Larder", "LarderEngine", "LarderLevelDB", "LarderOriginClients",
                "LarderQueries", "LarderQuerying", "LarderRESP", "LarderPlatform", "LarderServices",
            ], path: "Tests/Benchmarks/larderbench",
            swiftSettings: settings, linkerSettings: homebrewLink),
        .testTarget(
            name: "LarderBenchTests", dependencies: ["larderbench", "LarderTestSupport", "LarderPlatform"],
            path: "Tests/Benchmarks/LarderBenchTests",
            swiftSettings: settings),
    ]

// Xcode collects privacy manifests from resources. Elsewhere a resource would make each program load Foundation.
#if os(macOS)
    let (privacyManifests, unusedManifests): ([Resource], [String]) = ([.copy("PrivacyInfo.xcprivacy")], [])
#else
    let (privacyManifests, unusedManifests): ([Resource], [String]) = ([], ["PrivacyInfo.xcprivacy"])
#endif

let package = Package(
    name: "Larder",
    platforms: [.macOS(.v15)],
    products: [
        .library(name: "Larder", targets: ["Larder"]),
        .library(name: "LarderClient", targets: ["LarderClient"]),
        .library(name: "LarderOrigins", targets: ["LarderOrigins"]),
        .executable(name: "larderd", targets: ["larderd"]),
        .executable(name: "larderctl", targets: ["larderctl"]),
        .executable(name: "larderweb", targets: ["larderweb"]),
    ],
    targets: allocatorTargets + tourTargets + benchTargets + [
        .systemLibrary(
            name: "CLarderLevelDB", path: "Sources/System/CLarderLevelDB",
            providers: [.apt(["libleveldb-dev", "libsnappy-dev"]), .brew(["leveldb", "snappy"])]),
        .systemLibrary(
            name: "CLarderUV", path: "Sources/System/CLarderUV", pkgConfig: "libuv",
            providers: [.apt(["libuv1-dev"]), .brew(["libuv"])]),
        .systemLibrary(
            name: "CLarderSnappy", path: "Sources/System/CLarderSnappy",
            providers: [.apt(["libsnappy-dev"]), .brew(["snappy"])]),
        .systemLibrary(
            name: "CLarderXXHash", path: "Sources/System/CLarderXXHash", pkgConfig: "libxxhash",
            providers: [.apt(["libxxhash-dev"]), .brew(["xxhash"])]),
        .systemLibrary(
            name: "CLarderLua", path: "Sources/System/CLarderLua", pkgConfig: "lua5.1",
            providers: [.apt(["liblua5.1-0-dev", "lua-cjson-dev", "lua-bitop-dev"]), .brew(["lua@5.1"])]),
        .systemLibrary(
            name: "CLarderMessageDigest", path: "Sources/System/CLarderMessageDigest", pkgConfig: "libmd",
            providers: [.apt(["libmd-dev"]), .brew(["libmd"])]),
        // For origins behind TLS.
        .systemLibrary(
            name: "CLarderOpenSSL", path: "Sources/System/CLarderOpenSSL", pkgConfig: "openssl",
            providers: [.apt(["libssl-dev"]), .brew(["openssl@3"])]),
        // For larderctl alone.
        .systemLibrary(
            name: "CLarderEditLine", path: "Sources/System/CLarderEditLine", pkgConfig: "libedit",
            providers: [.apt(["libedit-dev"]), .brew(["libedit"])]),
        // All that Lua may leave by longjmp. Homebrew has neither cjson nor bit; Debian's pkg-config file of bit is faulty.
        .target(
            name: "CLarderLuaBridge", dependencies: ["CLarderLua"], path: "Sources/System/CLarderLuaBridge",
            linkerSettings: [
                .linkedLibrary("lua5.1-cjson", .when(platforms: [.linux])),
                .linkedLibrary("lua5.1-bitop", .when(platforms: [.linux])),
            ]),
        .target(
            name: "CLarderLevelDBFiles", dependencies: ["CLarderLevelDB"], path: "Sources/System/CLarderLevelDBFiles",
            cxxSettings: homebrewCXX),
        .target(name: "CLarderCRC32C", path: "Sources/System/CLarderCRC32C"),
        .target(name: "CLarderPrefetch", path: "Sources/System/CLarderPrefetch"),
        // Everything of the operating system, once.
        .target(name: "LarderPlatform", path: "Sources/Shared/LarderPlatform", swiftSettings: settings),
        // What programs share: the table of options, log, service manager, the socket's file.
        .target(
            name: "LarderServices", dependencies: ["LarderPlatform", "LarderVocabulary"],
            path: "Sources/Shared/LarderServices",
            swiftSettings: settings),
        .target(
            name: "LarderVocabulary", dependencies: ["LarderPlatform"], path: "Sources/Shared/LarderVocabulary",
            swiftSettings: settings),
        // Single flight and its rules, for the library and the client alike.
        .target(
            name: "LarderFetching", dependencies: ["LarderVocabulary", "LarderPlatform"],
            path: "Sources/Shared/LarderFetching",
            swiftSettings: settings + [.enableUpcomingFeature("NonisolatedNonsendingByDefault")]),
        // Changes of entries as they are told, for the library and the client alike.
        .target(
            name: "LarderObserving", dependencies: ["LarderVocabulary", "LarderPlatform"],
            path: "Sources/Shared/LarderObserving",
            swiftSettings: settings + [.enableUpcomingFeature("NonisolatedNonsendingByDefault")]),
        // The formats of LevelDB's files, read without LevelDB: for the engine's own checks, and for a salvage.
        .target(
            name: "LarderLevelDBFormat", dependencies: ["CLarderCRC32C", "LarderPlatform"],
            path: "Sources/Engine/LarderLevelDBFormat", swiftSettings: settings),
        .target(
            name: "LarderLevelDB",
            dependencies: ["CLarderLevelDB", "CLarderLevelDBFiles", "LarderLevelDBFormat", "LarderPlatform"],
            path: "Sources/Engine/LarderLevelDB",
            swiftSettings: settings, linkerSettings: homebrewLink),
        // Reads everything readable in a damaged LevelDB. Its only door is SalvageReader; only the engine's room Salvage
        // opens it.
        .target(
            name: "LarderLevelDBSalvage",
            dependencies: ["CLarderCRC32C", "CLarderSnappy", "LarderLevelDBFormat", "LarderPlatform"],
            path: "Sources/Engine/LarderLevelDBSalvage",
            swiftSettings: settings, linkerSettings: homebrewLink),
        .target(
            name: "LarderEngine",
            dependencies: [
                "CLarderCRC32C", "CLarderPrefetch", "LarderLevelDB", "LarderLevelDBFormat", "LarderLevelDBSalvage",
                "LarderVocabulary", "LarderPlatform",
            ], path: "Sources/Engine/LarderEngine",
            swiftSettings: settings),
        // Without LevelDB: larderctl checks and restores backups.
        .target(
            name: "LarderBackup", dependencies: ["CLarderCRC32C", "LarderPlatform"],
            path: "Sources/Engine/LarderBackup", swiftSettings: settings),
        // What waits to be brought elsewhere, durably: for the daemon and the library alike.
        .target(
            name: "LarderOutboxes", dependencies: ["LarderEngine", "LarderPlatform"],
            path: "Sources/Engine/LarderOutboxes", swiftSettings: settings),
        // Runs queries on the entries of a database: for the daemon and the library alike.
        .target(
            name: "LarderQuerying",
            dependencies: ["LarderEngine", "LarderJSONCoding", "LarderPlatform", "LarderQueries"],
            path: "Sources/Engine/LarderQuerying", swiftSettings: settings),
        .target(name: "LarderJSONCoding", path: "Sources/Shared/LarderJSONCoding", swiftSettings: settings),
        // Conditions, sorting, grouping and index terms of JSON documents: without the engine, for daemon and library.
        .target(
            name: "LarderQueries", dependencies: ["LarderJSONCoding", "LarderVocabulary", "LarderPlatform"],
            path: "Sources/Shared/LarderQueries", swiftSettings: settings),
        .target(
            name: "LarderModelCoding", dependencies: ["LarderJSONCoding", "LarderVocabulary", "LarderPlatform"],
            path: "Sources/Shared/LarderModelCoding", swiftSettings: settings),
        // Queries of models by their properties, for the library and the client alike.
        .target(
            name: "LarderModelQueries",
            dependencies: [
                "LarderJSONCoding", "LarderModelCoding", "LarderPlatform", "LarderQueries", "LarderVocabulary",
            ],
            path: "Sources/Shared/LarderModelQueries",
            swiftSettings: settings + [.enableUpcomingFeature("NonisolatedNonsendingByDefault")]),
        .target(
            name: "Larder",
            dependencies: [
                "LarderFetching", "LarderJSONCoding", "LarderModelCoding", "LarderModelQueries", "LarderObserving",
                "LarderOutboxes", "LarderEngine", "LarderPlatform", "LarderQueries", "LarderQuerying",
            ], exclude: unusedManifests, resources: privacyManifests,
            // What is called from an actor stays on it: a hot read costs no change of threads.
            swiftSettings: settings + [.enableUpcomingFeature("NonisolatedNonsendingByDefault")]),
        .target(name: "LarderRESP", path: "Sources/Shared/LarderRESP", swiftSettings: settings),
        // Connections of the client and of origins: the loop's thread, sockets, handshakes, requests and replies.
        .target(
            name: "LarderWire", dependencies: ["LarderPlatform", "LarderRESP"], path: "Sources/Shared/LarderWire",
            swiftSettings: settings),
        // What stands behind a cache: Redis, a cluster of them, or anything else that can be asked.
        .target(
            name: "LarderOriginClients",
            dependencies: ["CLarderOpenSSL", "LarderVocabulary", "LarderPlatform", "LarderRESP", "LarderWire"],
            path: "Sources/Shared/LarderOriginClients",
            swiftSettings: settings),
        // Redis and the like as origins of the library's caches: apart, because the library does not need OpenSSL.
        .target(
            name: "LarderOrigins", dependencies: ["Larder", "LarderOriginClients", "LarderPlatform"],
            swiftSettings: settings + [.enableUpcomingFeature("NonisolatedNonsendingByDefault")]),
        // Without LevelDB and libuv: larderctl has its help from it.
        .target(
            name: "LarderCommandCatalog", dependencies: ["LarderVocabulary", "LarderRESP"],
            path: "Sources/Server/LarderCommandCatalog", swiftSettings: settings),
        .target(
            name: "LarderServer",
            dependencies: [
                "LarderBackup", "CLarderLuaBridge", "CLarderMessageDigest", "LarderCommandCatalog", "LarderEngine",
                "LarderJSONCoding", "LarderOriginClients", "LarderOutboxes", "LarderQueries", "LarderQuerying",
                "LarderRESP",
                "LarderPlatform",
                "LarderServices",
                "CLarderUV", "CLarderXXHash",
            ], path: "Sources/Server/LarderServer",
            swiftSettings: settings, linkerSettings: homebrewLink),
        .target(
            name: "LarderClient",
            dependencies: [
                "LarderCommandCatalog", "LarderFetching", "LarderJSONCoding", "LarderModelCoding",
                "LarderModelQueries", "LarderObserving", "LarderQueries", "LarderRESP",
                "LarderVocabulary", "LarderPlatform", "LarderWire",
            ], exclude: unusedManifests, resources: privacyManifests,
            // What is called from an actor stays on it: a read of the near cache costs no change of threads.
            swiftSettings: settings + [.enableUpcomingFeature("NonisolatedNonsendingByDefault")]),
        .executableTarget(
            name: "larderd",
            dependencies: ["CLarderLevelDBFiles", "LarderServer", "LarderClient", "LarderEngine", "LarderPlatform"]
                + (usesJemalloc ? ["CLarderAllocator"] : []),
            swiftSettings: settings + (usesJemalloc ? [.define("LARDER_JEMALLOC")] : [])),
        .executableTarget(
            name: "larderctl",
            dependencies: [
                "LarderBackup", "CLarderCRC32C", "CLarderEditLine", "LarderCommandCatalog", "LarderJSONCoding",
                "LarderClient", "LarderOriginClients", "LarderQueries", "LarderVocabulary",
                "LarderPlatform", "LarderRESP", "LarderServices",
            ],
            swiftSettings: settings),
        .systemLibrary(
            name: "CLarderMicroHTTPD", path: "Sources/System/CLarderMicroHTTPD", pkgConfig: "libmicrohttpd",
            providers: [.apt(["libmicrohttpd-dev"]), .brew(["libmicrohttpd"])]),
        // The pages of larderweb, in the program itself.
        .target(name: "CLarderWebPages", path: "Sources/System/CLarderWebPages", exclude: ["Pages"]),
        .executableTarget(
            name: "larderweb",
            dependencies: [
                "CLarderMicroHTTPD", "CLarderWebPages", "LarderJSONCoding", "Larder",
                "LarderClient", "LarderQueries",
                "LarderVocabulary",
                "LarderPlatform", "LarderRESP", "LarderServices",
            ],
            swiftSettings: settings, linkerSettings: homebrewLink),

        // preload.c is compiled by the tests that preload it.
        .target(
            name: "CLarderFaultLibrary", path: "Tests/FaultLibrary", exclude: ["preload.c"],
            publicHeadersPath: "include"),
        .target(
            name: "LarderTestSupport", dependencies: ["CLarderFaultLibrary", "LarderPlatform", "LarderRESP"],
            path: "Tests/LarderTestSupport",
            swiftSettings: settings,
            // Links the tests in half of gold's time. Every Swift toolchain for Linux contains lld.
            linkerSettings: [.unsafeFlags(["-use-ld=lld"], .when(platforms: [.linux]))]),
        // Makes accidents of recorded runs of larderd, and judges what an engine makes of them.
        .target(
            name: "LarderCrashMachine",
            dependencies: ["LarderEngine", "LarderServer", "LarderTestSupport", "LarderPlatform"],
            path: "Tests/LarderCrashMachine",
            swiftSettings: settings),
        .executableTarget(
            name: "larderaccidents",
            dependencies: ["LarderCrashMachine", "LarderEngine", "larderd", "LarderPlatform", "LarderTestSupport"],
            path: "Tests/larderaccidents", swiftSettings: settings),
        // The tests run larderd and larderctl, but do not depend on them: they would be compiled again whenever a
        // program is linked again. `swift test` and `swift build --build-tests` build all programs.
        .testTarget(
            name: "LarderLevelDBTests",
            dependencies: [
                "CLarderCRC32C", "CLarderLevelDB", "LarderLevelDB", "LarderLevelDBFormat", "LarderLevelDBSalvage",
                "LarderPlatform", "LarderTestSupport",
            ],
            swiftSettings: settings),
        .testTarget(
            name: "LarderEngineTests",
            dependencies: [
                "CLarderCRC32C", "LarderEngine", "LarderLevelDB", "LarderLevelDBFormat", "LarderPlatform",
                "LarderTestSupport",
            ],
            exclude: ["Golden"], swiftSettings: settings),
        .testTarget(
            name: "LarderTests",
            dependencies: [
                "LarderFetching", "Larder", "LarderEngine", "LarderModelQueries", "LarderObserving",
                "LarderTestSupport", "LarderPlatform",
            ],
            swiftSettings: settings),
        .testTarget(
            name: "LarderJSONCodingTests", dependencies: ["LarderJSONCoding", "LarderTestSupport"],
            swiftSettings: settings),
        .testTarget(
            name: "LarderQueriesTests",
            dependencies: ["LarderJSONCoding", "LarderPlatform", "LarderQueries", "LarderTestSupport"],
            swiftSettings: settings),
        .testTarget(
            name: "LarderOriginClientsTests",
            dependencies: ["LarderOriginClients", "LarderPlatform", "LarderRESP", "LarderTestSupport"],
            swiftSettings: settings),
        .testTarget(
            name: "LarderRESPTests", dependencies: ["LarderRESP", "LarderTestSupport"], swiftSettings: settings),
        .testTarget(
            name: "LarderServerTests",
            dependencies: [
                "LarderCommandCatalog", "LarderServer", "LarderEngine", "LarderOriginClients", "LarderOutboxes",
                "LarderPlatform", "LarderQueries", "LarderQuerying",
                "LarderRESP",
                "LarderServices",
                "LarderTestSupport",
            ],
            swiftSettings: settings),
        .testTarget(
            name: "LarderClientTests",
            dependencies: [
                "LarderFetching", "Larder", "LarderClient", "LarderObserving", "LarderRESP", "LarderTestSupport",
                "LarderPlatform", "LarderWire",
            ],
            swiftSettings: settings),
        .testTarget(
            name: "LarderBackupTests", dependencies: ["LarderBackup", "LarderPlatform", "LarderTestSupport"],
            swiftSettings: settings),
        .testTarget(
            name: "LarderctlTests", dependencies: ["larderctl", "LarderTestSupport"], swiftSettings: settings),
        .testTarget(
            name: "LarderwebTests",
            dependencies: ["larderweb", "LarderPlatform", "LarderServices", "LarderTestSupport"],
            exclude: ["Programs"], swiftSettings: settings),
        .testTarget(
            name: "LarderOriginsTests", dependencies: ["Larder", "LarderOrigins", "LarderTestSupport"],
            swiftSettings: settings),
        .testTarget(
            name: "LarderSystemTests",
            dependencies: [
                "LarderCommandCatalog", "LarderCrashMachine", "Larder", "LarderClient", "LarderOrigins",
                "LarderQuerying",
                "LarderServer", "LarderServices", "LarderVocabulary", "LarderPlatform", "LarderRESP",
                "LarderTestSupport",
            ],
            exclude: ["Clients/Programs"], swiftSettings: settings),
    ],
    swiftLanguageModes: [.v6]
)
