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
    usesJemalloc ? [.target(name: "CAllocator", linkerSettings: [.linkedLibrary("jemalloc")])] : []

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
    targets: allocatorTargets + [
        .systemLibrary(
            name: "CLevelDB",
            providers: [.apt(["libleveldb-dev", "libsnappy-dev"]), .brew(["leveldb", "snappy"])]),
        .systemLibrary(
            name: "CUV", pkgConfig: "libuv",
            providers: [.apt(["libuv1-dev"]), .brew(["libuv"])]),
        .systemLibrary(name: "CSnappy", providers: [.apt(["libsnappy-dev"]), .brew(["snappy"])]),
        .systemLibrary(
            name: "CXXHash", pkgConfig: "libxxhash",
            providers: [.apt(["libxxhash-dev"]), .brew(["xxhash"])]),
        .systemLibrary(
            name: "CLua", pkgConfig: "lua5.1",
            providers: [.apt(["liblua5.1-0-dev", "lua-cjson-dev", "lua-bitop-dev"]), .brew(["lua@5.1"])]),
        .systemLibrary(
            name: "CMessageDigest", pkgConfig: "libmd", providers: [.apt(["libmd-dev"]), .brew(["libmd"])]),
        // For origins behind TLS.
        .systemLibrary(
            name: "COpenSSL", pkgConfig: "openssl", providers: [.apt(["libssl-dev"]), .brew(["openssl@3"])]),
        // For larderctl alone.
        .systemLibrary(
            name: "CEditLine", pkgConfig: "libedit", providers: [.apt(["libedit-dev"]), .brew(["libedit"])]),
        // All that Lua may leave by longjmp. Homebrew has neither cjson nor bit; Debian's pkg-config file of bit is faulty.
        .target(
            name: "CLuaBridge", dependencies: ["CLua"],
            linkerSettings: [
                .linkedLibrary("lua5.1-cjson", .when(platforms: [.linux])),
                .linkedLibrary("lua5.1-bitop", .when(platforms: [.linux])),
            ]),
        .target(name: "CLevelDBFiles", dependencies: ["CLevelDB"], cxxSettings: homebrewCXX),
        .target(name: "CCRC32C"),
        .target(name: "CPrefetch"),
        // Everything of the operating system, once.
        .target(name: "Platform", swiftSettings: settings),
        // What programs that run as services share: log, service manager, the socket's file.
        .target(name: "Services", dependencies: ["Platform"], swiftSettings: settings),
        .target(name: "LarderVocabulary", dependencies: ["Platform"], swiftSettings: settings),
        // Single flight and its rules, for the library and the client alike.
        .target(
            name: "Fetching", dependencies: ["LarderVocabulary", "Platform"],
            swiftSettings: settings + [.enableUpcomingFeature("NonisolatedNonsendingByDefault")]),
        // Changes of entries as they are told, for the library and the client alike.
        .target(
            name: "Observing", dependencies: ["LarderVocabulary", "Platform"],
            swiftSettings: settings + [.enableUpcomingFeature("NonisolatedNonsendingByDefault")]),
        .target(
            name: "LevelDB", dependencies: ["CCRC32C", "CLevelDB", "CLevelDBFiles", "Platform"],
            swiftSettings: settings, linkerSettings: homebrewLink),
        .target(
            name: "LevelDBSalvage", dependencies: ["CCRC32C", "CSnappy", "Platform"],
            swiftSettings: settings, linkerSettings: homebrewLink),
        .target(
            name: "LarderEngine",
            dependencies: ["CCRC32C", "CPrefetch", "LevelDB", "LevelDBSalvage", "LarderVocabulary", "Platform"],
            swiftSettings: settings),
        // Without LevelDB: larderctl checks and restores backups.
        .target(name: "Backup", dependencies: ["CCRC32C", "Platform"], swiftSettings: settings),
        // What waits to be brought elsewhere, durably: for the daemon and the library alike.
        .target(name: "Outboxes", dependencies: ["LarderEngine", "Platform"], swiftSettings: settings),
        .target(name: "JSONCoding", swiftSettings: settings),
        .target(
            name: "ModelCoding", dependencies: ["JSONCoding", "LarderVocabulary", "Platform"], swiftSettings: settings),
        .target(
            name: "Larder",
            dependencies: ["Fetching", "ModelCoding", "Observing", "Outboxes", "LarderEngine", "Platform"],
            // What is called from an actor stays on it: a hot read costs no change of threads.
            swiftSettings: settings + [.enableUpcomingFeature("NonisolatedNonsendingByDefault")]),
        .target(name: "RESP", swiftSettings: settings),
        // What stands behind a cache: Redis, a cluster of them, or anything else that can be asked.
        .target(
            name: "Origins", dependencies: ["COpenSSL", "CUV", "LarderVocabulary", "Platform", "RESP"],
            swiftSettings: settings),
        // Redis and the like as origins of the library's caches: apart, because the library needs neither libuv nor OpenSSL.
        .target(
            name: "LarderOrigins", dependencies: ["Larder", "Origins", "Platform"],
            swiftSettings: settings + [.enableUpcomingFeature("NonisolatedNonsendingByDefault")]),
        // Without LevelDB and libuv: larderctl has its help from it.
        .target(name: "CommandCatalog", dependencies: ["LarderVocabulary", "RESP"], swiftSettings: settings),
        .target(
            name: "LarderServer",
            dependencies: [
                "Backup", "CLuaBridge", "CMessageDigest", "CommandCatalog", "LarderEngine", "Origins", "Outboxes",
                "RESP",
                "Platform",
                "Services",
                "CUV", "CXXHash",
            ],
            swiftSettings: settings, linkerSettings: homebrewLink),
        .target(
            name: "LarderClient",
            dependencies: [
                "CommandCatalog", "Fetching", "ModelCoding", "Observing", "RESP", "LarderVocabulary", "Platform",
            ],
            // What is called from an actor stays on it: a read of the near cache costs no change of threads.
            swiftSettings: settings + [.enableUpcomingFeature("NonisolatedNonsendingByDefault")]),
        .executableTarget(
            name: "larderd",
            dependencies: ["LarderServer", "LarderEngine", "Platform", "RESP"] + (usesJemalloc ? ["CAllocator"] : []),
            swiftSettings: settings + (usesJemalloc ? [.define("LARDER_JEMALLOC")] : [])),
        // Makes docs/Protocol.md: for the tests, not for the daemon.
        .target(
            name: "ProtocolReference", dependencies: ["CommandCatalog", "LarderEngine", "LarderServer"],
            swiftSettings: settings),
        .executableTarget(
            name: "larderctl",
            dependencies: [
                "Backup", "CCRC32C", "CEditLine", "CommandCatalog", "JSONCoding", "LarderClient", "LarderVocabulary",
                "Platform", "RESP",
            ],
            swiftSettings: settings),
        .systemLibrary(
            name: "CMicroHTTPD", pkgConfig: "libmicrohttpd",
            providers: [.apt(["libmicrohttpd-dev"]), .brew(["libmicrohttpd"])]),
        // The pages of larderweb, in the program itself.
        .target(name: "CWebPages", exclude: ["Pages"]),
        .executableTarget(
            name: "larderweb",
            dependencies: [
                "CMicroHTTPD", "CommandCatalog", "CWebPages", "JSONCoding", "Larder", "LarderClient",
                "LarderVocabulary",
                "Platform", "RESP", "Services",
            ],
            swiftSettings: settings, linkerSettings: homebrewLink),
        .executableTarget(
            name: "larderbench",
            dependencies: ["CLevelDB", "CUV", "Larder", "LarderEngine", "LevelDB", "Origins", "RESP", "Platform"],
            swiftSettings: settings, linkerSettings: homebrewLink),

        // preload.c is compiled by the tests that preload it.
        .target(
            name: "CFaultLibrary", path: "Tests/FaultLibrary", exclude: ["preload.c"], publicHeadersPath: "include"),
        .target(
            name: "TestSupport", dependencies: ["CFaultLibrary", "Platform", "RESP"], path: "Tests/TestSupport",
            swiftSettings: settings),
        // Makes accidents of recorded runs of larderd, and judges what an engine makes of them.
        .target(
            name: "CrashMachine", dependencies: ["LarderEngine", "TestSupport", "Platform"],
            path: "Tests/CrashMachine",
            swiftSettings: settings),
        .executableTarget(
            name: "larderaccidents", dependencies: ["CrashMachine", "larderd", "Platform", "TestSupport"],
            path: "Tests/larderaccidents", swiftSettings: settings),
        .testTarget(
            name: "LevelDBTests", dependencies: ["CCRC32C", "LevelDB", "LevelDBSalvage", "Platform", "TestSupport"],
            swiftSettings: settings),
        .testTarget(
            name: "LarderEngineTests", dependencies: ["CCRC32C", "LarderEngine", "LevelDB", "Platform", "TestSupport"],
            exclude: ["Golden"], swiftSettings: settings),
        .testTarget(
            name: "LarderTests",
            dependencies: ["Fetching", "Larder", "LarderEngine", "Observing", "TestSupport", "Platform"],
            swiftSettings: settings),
        .testTarget(name: "JSONCodingTests", dependencies: ["JSONCoding", "TestSupport"], swiftSettings: settings),
        .testTarget(
            name: "OriginsTests", dependencies: ["Origins", "Platform", "RESP", "TestSupport"], swiftSettings: settings),
        .testTarget(name: "RESPTests", dependencies: ["RESP", "TestSupport"], swiftSettings: settings),
        .testTarget(
            name: "LarderServerTests",
            dependencies: [
                "CommandCatalog", "LarderServer", "LarderEngine", "Origins", "Outboxes", "Platform",
                "ProtocolReference",
                "RESP",
                "Services",
                "TestSupport",
            ],
            swiftSettings: settings),
        .testTarget(
            name: "LarderClientTests",
            dependencies: [
                "Fetching", "Larder", "LarderClient", "LarderEngine", "larderctl", "larderd", "Observing", "RESP",
                "TestSupport", "Platform",
            ],
            swiftSettings: settings),
        .testTarget(
            name: "BackupTests", dependencies: ["Backup", "Platform", "TestSupport"], swiftSettings: settings),
        .testTarget(
            name: "LarderctlTests", dependencies: ["larderctl", "larderd", "TestSupport"], swiftSettings: settings),
        .testTarget(
            name: "LarderwebTests", dependencies: ["larderd", "larderweb", "Platform", "Services", "TestSupport"],
            exclude: ["Programs"], swiftSettings: settings),
        .testTarget(
            name: "LarderBenchTests", dependencies: ["larderbench", "larderd", "TestSupport", "Platform"],
            swiftSettings: settings),
        .testTarget(
            name: "LarderOriginsTests", dependencies: ["Larder", "LarderOrigins", "larderd", "TestSupport"],
            swiftSettings: settings),
        .testTarget(
            name: "SystemTests",
            dependencies: [
                "CommandCatalog", "CrashMachine", "Larder", "LarderClient", "LarderOrigins", "LarderServer",
                "LarderVocabulary", "larderd", "larderctl", "larderweb", "Platform", "ProtocolReference", "RESP",
                "TestSupport",
            ],
            exclude: ["Clients/Programs"], swiftSettings: settings),
    ],
    swiftLanguageModes: [.v6]
)
