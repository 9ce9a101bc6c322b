import Larder

/// `batches`: writes the same round number into many entries in a batch, repeatedly, until it is killed. `batches
/// --check` then checks that all entries are of the same round.
enum Batches {
    private static let database = "rounds"
    private static let entries = 500

    private struct Part: Codable {
        var round: Int
        var part: Int
        /// Some text, so that a batch takes a while to write.
        var text: String
    }

    static func run(_ arguments: inout Arguments) throws {
        let directory = try arguments.required("--directory")
        let check = arguments.flag("--check")
        try arguments.end()
        let cache = try Cache(named: database, policy: .middle, directory: directory)
        let found = try rounds(cache)
        guard !check else {
            Console.out("\(found.first ?? 0)")
            return
        }
        var round = found.first ?? 0
        while true {
            (round, _) = round.addingReportingOverflow(1)
            try cache.batch { batch in
                for part in 0..<entries {
                    try batch.set(
                        Part(round: round, part: part, text: String(repeating: "larder ", count: 60)),
                        forKey: "part:\(part)")
                }
            }
            // Print the round only after its batch was acknowledged.
            Console.out("\(round)")
        }
    }

    /// Returns the round of all entries; empty if there are no entries.
    /// - Throws: if a batch was stored only in part.
    private static func rounds(_ cache: Cache) throws -> Set<Int> {
        let parts = try cache.entries(of: Part.self).values()
        let rounds = Set(parts.map(\.round))
        guard rounds.count <= 1, parts.isEmpty || parts.count == entries else {
            throw Catalog.NotFound(
                message: "a batch was stored only in part: \(parts.count) entries of the rounds \(rounds.sorted())")
        }
        return rounds
    }
}
