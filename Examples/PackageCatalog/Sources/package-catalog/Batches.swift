import Larder

/// `batches`: a batch that writes the same round into many entries, again and again, for somebody to kill it in the middle;
/// and the look afterwards, whether all entries are of one round.
enum Batches {
    private static let database = "rounds"
    private static let entries = 500

    private struct Part: Codable {
        var round: Int
        var part: Int
        /// Some weight, so that a batch takes a while to write.
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
            // Only now: what is written here was acknowledged.
            Console.out("\(round)")
        }
    }

    /// The round that all entries are of; empty when there are none.
    /// - Throws: when a part of a batch is there.
    private static func rounds(_ cache: Cache) throws -> Set<Int> {
        let parts = try cache.entries(of: Part.self).values()
        let rounds = Set(parts.map(\.round))
        guard rounds.count <= 1, parts.isEmpty || parts.count == entries else {
            throw Catalog.NotFound(
                message: "a part of a batch is there: \(parts.count) entries of the rounds \(rounds.sorted())")
        }
        return rounds
    }
}
