import LarderEngine

/// Runs a trace through the engine's memory tier. All entries are in LevelDB; the larder is opened with a small tier,
/// and read as by the daemon. Only this type knows how to access the tier.
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
            try database.commit(keys, loading: .none) { update in
                for index in keys.indices { value.withUnsafeBytes { update.put(index, payload: $0) } }
            }
        }
    }

    /// Runs a trace on a tier of `memoryBytes`, which is empty at first.
    /// - Returns: the share of requests served by the tier, counted from position `start`, and the number of its
    ///   entries at the end.
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
                // As in the daemon's worker for cold keys, the entry is added to the tier.
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
            try database.read(key, now: now, .memoryOnly, ticket: &ticket) { _, _ in } == .hit
        }
    }
}
