import Foundation
import LarderTestSupport
import Testing

/// Tests that the sources follow the architecture. Each file is in one directory (a "room"). Upper rooms may use lower
/// rooms, but not the reverse.
///
/// Reads the sources as text. A reference is the name of a type that another file of the module declares.
@Suite struct LayeringTests {
    /// The rooms of a module from top to bottom, and the number of references against that order, which must not
    /// increase.
    struct Plan: Sendable, CustomStringConvertible {
        let module: String
        let rooms: [String]
        var upwardMax = 0
        var cycleMax = 2

        var description: String { module }
    }

    static let plans = [
        Plan(
            module: "LarderEngine",
            rooms: [
                "Larder", "Images", "Maintenance", "Observation", "Following", "Salvage", "Checkpoint",
                "Eviction",
                "Recovery",
                "Operations",
                "Views",
                "Database",
                "Commit",
                "Changes",
                "Journal", "Memory", "Leases", "Store", "Context", "Entry", "System",
            ]),
        Plan(
            module: "LarderServer",
            rooms: [
                "Daemon", "Network", "Dispatch", "Commands", "Session", "Transactions", "Options", "State", "Origin",
                "Scripting", "Rights", "Command", "Notifications", "Messages", "Formats", "System",
            ]),
        Plan(
            module: "LarderClient",
            rooms: [
                "Client", "Locks", "Replication", "Blocking", "Cache", "Connections", "NearCache", "Subscriptions",
                "Requests", "Types",
            ]),
        Plan(module: "Larder", rooms: ["Origin", "Outbox", "Cache", "Reading", "Enumeration", "Source", "Types"]),
        Plan(module: "LarderLevelDB", rooms: ["Database", "Options", "Files", "System"]),
        Plan(module: "LarderLevelDBSalvage", rooms: ["Salvage", "Tables", "Logs", "Types"]),
        Plan(module: "LarderPlatform", rooms: ["Processes", "Sockets", "Files", "Threads", "Clocks", "System"]),
        Plan(
            module: "larderctl",
            rooms: ["Program", "Verbs", "Shell", "Watching", "Transfer", "Options", "Text", "System"]),
        Plan(module: "LarderOriginClients", rooms: ["Redis", "Cluster", "Types"]),
        Plan(module: "larderweb", rooms: ["Program", "API", "Metrics", "History", "Daemon", "HTTP"]),
    ]

    /// A seam: other files use only a few types of the files behind it, so readers of these files need not open them.
    struct Seam: Sendable, CustomStringConvertible {
        let module: String
        /// Parts of the paths of the files behind the seam.
        let paths: [String]
        /// The types that other files may use.
        let doors: Set<String>

        var description: String { module + paths[0] }

        func isBehind(_ file: SourceFile) -> Bool { paths.contains { file.path.contains($0) } }
    }

    static let seams = [
        Seam(
            module: "LarderEngine", paths: ["/Salvage/"],
            doors: ["Salvager", "DatabaseRepair", "LarderCheck", "CheckReport", "CheckProblem"]),
        Seam(
            module: "LarderServer", paths: ["/Scripting/", "/Dispatch/Scripts/", "/ScriptProgress.swift"],
            doors: [
                "ScriptCache", "FunctionLibraries", "ScriptProgress", "ScriptCall", "ScriptDigest", "RunningScript",
            ]),
    ]

    @Test(arguments: seams) func seamsAreNarrow(_ seam: Seam) throws {
        let module = try #require(try Self.modules.get()[seam.module])
        for reference in module.references where seam.isBehind(reference.to) && !seam.isBehind(reference.from) {
            #expect(
                seam.doors.contains(reference.name), "\(reference.from.path):\(reference.line): \(reference.name)")
        }
    }

    /// See `Locked`: each access would wrap such a function in two more closures.
    @Test func noFunctionIsTheValueOfALock() throws {
        let function = #/Locked<[@(][^\[\]<>]*->/#
        #expect("Locked<(@Sendable () -> Void)?>(nil)".contains(function))
        for path in SourceModule.paths(below: "Sources") {
            #expect(try !DocsTests.read(path).contains(function), "\(path)")
        }
    }

    @Test func onlyTheSalvageReadsDamagedFiles() throws {
        for file in try SourceModule.allFiles() where file.lines.contains("import LarderLevelDBSalvage") {
            #expect(file.path.contains("/LarderEngine/Salvage/"), "\(file.path)")
        }
    }

    /// The maximum number of files in a room, so that a reader can keep an overview.
    static let filesMax = 25
    /// A function fits on a screen.
    static let functionLinesMax = 70

    /// The modules by their names. They are read only once.
    private static let modules = Result {
        Dictionary(uniqueKeysWithValues: try plans.map { ($0.module, try SourceModule($0.module)) })
    }

    private static func module(_ plan: Plan) throws -> SourceModule { try #require(try modules.get()[plan.module]) }

    @Test(arguments: plans) func everySourceFileIsInALayer(_ plan: Plan) throws {
        let module = try Self.module(plan)
        for file in module.files where !plan.rooms.contains(file.room) {
            Issue.record("\(file.path) is in none of the directories \(plan.rooms)")
        }
        for (directory, files) in Dictionary(grouping: module.files, by: \.directory) where files.count > Self.filesMax
        {
            Issue.record("\(directory): \(files.count) files, more than \(Self.filesMax)")
        }
        #expect(Set(module.files.map(\.room)) == Set(plan.rooms), "a room is empty")
    }

    @Test func testDirectoriesHaveFewFiles() throws {
        let paths = try FileManager.default.subpathsOfDirectory(atPath: PackageRoot.path + "/Tests")
        let files = paths.filter { $0.hasSuffix(".swift") }.map { $0[..<($0.lastIndex(of: "/") ?? $0.startIndex)] }
        for (directory, files) in Dictionary(grouping: files, by: { $0 }) where files.count > Self.filesMax {
            Issue.record("Tests/\(directory): \(files.count) files, more than \(Self.filesMax)")
        }
    }

    @Test(arguments: plans) func lowerLayersDoNotReferToHigherOnes(_ plan: Plan) throws {
        let module = try Self.module(plan)
        let upward = module.references.filter { reference in
            guard let from = plan.rooms.firstIndex(of: reference.from.room),
                let to = plan.rooms.firstIndex(of: reference.to.room)
            else { return false }
            return to < from
        }
        let text = upward.map { "\($0.from.path):\($0.line): \($0.name) is declared above, in \($0.to.room)" }
        #expect(upward.count <= plan.upwardMax, "\(upward.count):\n\(text.sorted().joined(separator: "\n"))")
        // Lower the number after fixing a reference.
        #expect(upward.count == plan.upwardMax || plan.upwardMax == 0, "upwardMax can be \(upward.count)")
    }

    @Test(arguments: plans) func filesHaveNoCyclicDependencies(_ plan: Plan) throws {
        let cycles = try Self.module(plan).cycles
        let largest = cycles.map(\.count).max() ?? 0
        let text = cycles.filter { $0.count > 2 }.map { $0.map(\.path).sorted().joined(separator: " ") }
        #expect(largest <= plan.cycleMax, "\(text.joined(separator: "\n"))")
        #expect(largest == plan.cycleMax || plan.cycleMax == 2, "cycleMax can be \(largest)")
    }

    @Test(arguments: plans) func directoriesHaveNoCyclicDependencies(_ plan: Plan) throws {
        for cycle in try Self.module(plan).directoryCycles {
            Issue.record("each depends on the others: \(cycle.sorted().joined(separator: " "))")
        }
    }

    @Test func functionsHaveFewLines() throws {
        for file in try SourceModule.allFiles() {
            for function in file.functions where function.lineCount > Self.functionLinesMax {
                Issue.record(
                    "\(file.path):\(function.line): \(function.lineCount) lines, at most \(Self.functionLinesMax)")
            }
        }
    }
}

/// Tests of the parser, with a small module of two directories.
@Suite struct SourceModuleTests {
    private static let lower = SourceFile(
        path: "Sources/M/Low/A.swift",
        text: """
            /// Not Upper: a comment.
            struct Lower { let text = "Upper" }
            """)
    private static let upper = SourceFile(
        path: "Sources/M/High/B.swift",
        text: """
            final class Upper {
                func long() {
                    let lower = Lower()
                    _ = "}{"
                }
            }
            """)

    @Test func referencesBetweenSourceFilesAreFound() {
        let module = SourceModule([Self.lower, Self.upper])
        #expect(module.references.map { "\($0.from.room) \($0.line) \($0.name) \($0.to.room)" } == ["High 3 Lower Low"])
        #expect(module.cycles.isEmpty)
        #expect(Self.upper.functions.map(\.lineCount) == [4])
    }

    @Test func cyclesBetweenSourceFilesAreFound() {
        let file = SourceFile(path: "Sources/M/Low/C.swift", text: "struct Third { var upper: Upper? }\n")
        let back = SourceFile(path: "Sources/M/Low/A.swift", text: "struct Lower { var third: [Third] }\n")
        let module = SourceModule([back, Self.upper, file])
        #expect(module.cycles.map(\.count) == [3])
        #expect(module.directoryCycles.map { $0.sorted() } == [["Sources/M/High", "Sources/M/Low"]])
        #expect(module.references.count { $0.from.room == "Low" && $0.to.room == "High" } == 1)
    }
}
