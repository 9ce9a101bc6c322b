import LarderEngine
import LarderPlatform
import LarderTestSupport

/// A failure of a run, or a defect found after the run.
package struct Finding: Error, CustomStringConvertible {
    package let description: String
    init(_ description: String) { self.description = description }
}

/// The files of a larder after a simulated accident, opened by an engine in this process.
struct CrashCopy {
    let path: String
    let options: EngineOptions
    /// The wall clock, in milliseconds.
    let wall: Int64
    /// The reported events, for messages.
    let events = Recorder<String>()

    init(_ path: String, durability: Durability, policy: UpdatePolicy, wall: Int64) {
        self.path = path
        self.wall = wall
        var options = EngineOptions()
        options.durability = durability
        options.defaultPolicy = policy
        options.onDamage = .salvage
        options.backgroundMaintenance = false
        options.onEvent = { [events] in events.add("\($0.level): \($0.message)") }
        self.options = options
    }

    /// Reads the complete state.
    /// - Parameter probe: whether to also write to every database, reopen everything and read it again.
    func look(latest: Int64, probe: Bool) throws -> FoundState {
        let engine = try Engine.open(path, options: options, time: ManualTimeSource(wallMilliseconds: wall))
        defer { engine.shutdown() }
        let found = try read(engine, latest)
        guard probe else { return found }
        for name in CommandDice.databases { try write(engine, name) }
        engine.shutdown()
        let again = try Engine.open(path, options: options, time: ManualTimeSource(wallMilliseconds: wall))
        defer { again.shutdown() }
        var second = try read(again, latest)
        for name in CommandDice.databases {
            guard second.databases[name]?.entries.removeValue(forKey: Self.probeKey) == Array("probe".utf8) else {
                throw Finding("what was written after the first opening is not there after the second")
            }
            if found.databases[name] == nil, second.databases[name]?.entries.isEmpty == true {
                second.databases[name] = nil
            }
        }
        for name in CommandDice.databases {
            let (first, then) = (found.databases[name]?.entries ?? [:], second.databases[name]?.entries ?? [:])
            guard first == then else {
                throw Finding(
                    "a second opening finds something else in '\(name)': "
                        + "\(first.count) and \(then.count) entries; \(Self.difference(first, then))")
            }
        }
        guard found.facts == second.facts else {
            throw Finding("a second opening finds \(second.facts), not \(found.facts)")
        }
        return found
    }

    private static let probeKey = "z:probe"

    private func write(_ engine: Engine, _ name: String) throws {
        try engine.openDatabase(name).commit([Key(Self.probeKey)], loading: .none) { update in
            Array("probe".utf8).withUnsafeBytes { update.put(0, payload: $0, rule: .ownNever) }
        }
    }

    private func read(_ engine: Engine, _ latest: Int64) throws -> FoundState {
        var found = FoundState(now: engine.now()...engine.now(), latest: latest)
        for database in engine.databases {
            var entries: [String: [UInt8]] = [:]
            if let cursor = try database.cursor() {
                while try cursor.next() {
                    entries[String(decoding: try cursor.key().bytes, as: UTF8.self)] = Array(
                        try cursor.record().payload)
                }
            }
            found.databases[database.name] = FoundState.Database(policy: database.policy, entries: entries)
        }
        let functions = try engine.ledger.value("functions").map { try StoredFacts.functions($0) }
        found.facts[.functions] = functions ?? Fact.none
        let origins = try engine.ledger.value("origins").map { try StoredFacts.origins($0) }
        for name in CommandDice.cachingDatabases { found.facts[.origin(name)] = origins?[name] ?? Fact.none }
        found.now = found.now.lowerBound...max(found.now.lowerBound, engine.now())
        return found
    }

    private static func difference(_ first: [String: [UInt8]], _ then: [String: [UInt8]]) -> String {
        Set(first.keys).union(then.keys).sorted().filter { first[$0] != then[$0] }.prefix(5).map { key in
            "\(key) was \(Judge.text(first[key])) and is \(Judge.text(then[key]))"
        }.joined(separator: "; ")
    }

    /// The quarantined files.
    var setAside: [String] { (try? FileSystem.list(path + "/DAMAGED")) ?? [] }
}

extension DiskImage {
    /// Returns the names and contents that differ from a directory, for messages. Skips LevelDB's LOG, which is written
    /// through a stream and therefore not recorded.
    package func differences(from path: String) throws -> [String] {
        var wrong: [String] = []
        let isLog = { (name: Substring?) in name == "LOG" || name == "LOG.old" }
        for file in files where !isLog(file.path.split(separator: "/").last) {
            let there = try FileSystem.read(path + "/" + file.path, bytesMax: 1 << 30)
            if there != file.bytes {
                wrong.append("\(file.path) has \(there?.count ?? -1) bytes, not the recorded \(file.bytes.count)")
            }
        }
        let known = Set(files.map(\.path) + directories)
        func visit(_ directory: String) throws {
            for name in try FileSystem.list(path + "/" + directory) where !isLog(Substring(name)) {
                if !known.contains(directory + name) { wrong.append("\(directory + name) is not in the trace") }
                if FileSystem.isDirectory(path + "/" + directory + name) { try visit(directory + name + "/") }
            }
        }
        try visit("")
        return wrong
    }

    /// Creates the directory with its contents.
    func write(to path: String) throws {
        try FileSystem.makeDirectory(path)
        for name in directories { try FileSystem.makeDirectory(path + "/" + name) }
        for file in files {
            let target = path + "/" + file.path
            let descriptor = open(target, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
            guard descriptor >= 0 else { throw Finding("cannot create \(target): \(String(cString: strerror(errno)))") }
            defer { close(descriptor) }
            try FileSystem.writeAll(file.bytes, descriptor: descriptor, path: target)
        }
    }
}
