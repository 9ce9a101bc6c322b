import LarderEngine

/// The engine's own memory tier under a trace: a larder whose entries are all in LevelDB, opened with a small tier, and
/// asked as the daemon asks it. The only place that knows how the tier is reached.
final class TierProbe {
    private let directory: String

    /// Makes a larder with entries 0..<universe.
    init(_ directory: String, universe: Int) throws {
        self.directory = directory
        let engine = try Engine.open(directory, options: StoreOptions.engine(memoryBytes: 0))
        defer { engine.shutdown() }
        let database = try engine.openDatabase("trace", policy: .never)
        let value = [UInt8](repeating: 0x78, count: 16)
        for start in stride(from: 0, to: universe, by: 1000) {
            let keys = (start..<min(start + 1000, universe)).map { Key(Keys.bytes($0)) }
            try database.commit(keys, loading: false) { update in
                for index in keys.indices { value.withUnsafeBytes { update.put(index, payload: $0) } }
            }
        }
    }

    /// Runs a trace on a tier of so many bytes that is empty at first.
    /// - Returns: the part of it that the tier answered, counted from `start` on, and how many entries it held at the end.
    func run(_ trace: Trace, memoryBytes: Int, from start: Int) throws -> (hitRatio: Double, count: Int) {
        let engine = try Engine.open(directory, options: StoreOptions.engine(memoryBytes: memoryBytes))
        defer { engine.shutdown() }
        let database = try engine.openDatabase("trace", policy: .never)
        let keys = (0..<trace.universe).map { Keys.bytes($0) }
        var hits = 0
        for (position, key) in trace.keys.enumerated() {
            if try isHit(keys[Int(key)], database) {
                if position >= start { hits += 1 }
            } else {
                // What the daemon's worker does with a cold key: the entry enters the tier.
                guard try database.get(Key(keys[Int(key)])) != nil else { throw BenchError("an entry is not there") }
            }
        }
        let count = try keys.reduce(0) { try isHit($1, database) ? $0 + 1 : $0 }
        return (Double(hits) / Double(max(trace.keys.count - start, 1)), count)
    }

    private func isHit(_ key: [UInt8], _ database: Database) throws -> Bool {
        var ticket = CommitTicket.none
        let now = database.now()
        return try key.withUnsafeBytes { key in
            try database.readInMemory(key, now: now, ticket: &ticket) { _, _ in } == .hit
        }
    }
}
