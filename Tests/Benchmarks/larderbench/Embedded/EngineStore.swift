import LarderEngine

/// LarderEngine: entries with a header and a policy, committed through the pipeline; bytes instead of models.
final class EngineStore: EmbeddedStore {
    private let entries: Entries
    private let engine: Engine
    private let database: Database

    init(_ directory: String, _ entries: Entries, memoryBytes: Int) throws {
        self.entries = entries
        engine = try Engine.open(directory, options: StoreOptions.engine(memoryBytes: memoryBytes))
        database = try engine.openDatabase("bench", policy: .never)
    }

    func put(_ index: Int) throws {
        try database.commit([Key(entries.keys[index])], loading: .none) { update in
            entries.values[index].withUnsafeBytes { update.put(0, payload: $0) }
        }
    }

    func putBatch(_ indices: ArraySlice<Int>) throws {
        try database.commit(indices.map { Key(entries.keys[$0]) }, loading: .none) { update in
            for (position, index) in indices.enumerated() {
                entries.values[index].withUnsafeBytes { update.put(position, payload: $0) }
            }
        }
    }

    /// Separate writes that are committed as one group, like the commands of one turn in the daemon.
    func putGroup(_ indices: ArraySlice<Int>) throws {
        var last = CommitTicket.none
        for index in indices {
            let ticket = try database.perform([Key(entries.keys[index])], .none, .mayBlock, now: database.now()) {
                update in entries.values[index].withUnsafeBytes { update.put(0, payload: $0) }
            }
            last = max(last, ticket ?? .none)
        }
        try engine.pipeline.wait(for: last)
    }

    func get(_ index: Int) throws -> Bool { try value(entries.keys[index]) != nil }

    func getAbsent(_ index: Int) throws -> Bool { try value(entries.absentKeys[index]) != nil }

    /// A copy of a value.
    private func value(_ key: [UInt8]) throws -> [UInt8]? {
        var value: [UInt8]?
        var ticket = CommitTicket.none
        _ = try key.withUnsafeBytes { key in
            try database.read(key, .mayBlock, ticket: &ticket) { record, _ in
                value = [UInt8](record.payload)
            }
        }
        if ticket != .none { try engine.pipeline.wait(for: ticket) }
        return value
    }

    /// A cursor reads LevelDB, so creating one writes all entries to it.
    func writeOut() throws { _ = try database.cursor() }

    func close() throws { engine.shutdown() }
}
