import LarderClient

/// How soon the entries of a database end, estimated from some of them.
struct FreshnessSample: Sendable {
    let database: String
    /// How many entries were looked at.
    let count: Int
    /// How many of these end within a minute, an hour, a day; each includes the one before.
    let minute: Int
    let hour: Int
    let day: Int
    /// How many never end.
    let never: Int

    /// How many entries of a database are looked at.
    private static let countMost = 200
    /// The largest databases only.
    private static let databasesMax = 20

    static func all(of databases: [DatabaseInfo], _ link: DaemonLink) throws(LarderClientError) -> [FreshnessSample] {
        var samples: [FreshnessSample] = []
        let largest = databases.filter { $0.entries ?? 1 > 0 }.sorted { $0.entries ?? 0 > $1.entries ?? 0 }
        for database in largest.prefix(databasesMax) {
            if let sample = try FreshnessSample(database, link) { samples.append(sample) }
        }
        return samples
    }

    /// Of a database with more entries, random ones are looked at.
    private static let scannedMax = 10_000

    /// - Returns: nil if the database has no entries, or cannot be read.
    private init?(_ database: DatabaseInfo, _ link: DaemonLink) throws(LarderClientError) {
        let isSmall = database.entries ?? .max <= Self.scannedMax
        let lives = try link.withClient { client throws(LarderClientError) -> [Int64] in
            // It may be one that larderweb has no rights to.
            guard try client.command("SELECT", database.name).errorMessage == nil else { return [] }
            // One snapshot for all: each RANDOMKEY would make one.
            guard try client.command("SNAPSHOT", "OPEN").errorMessage == nil else { return [] }
            let keys = isSmall ? try Self.spread(client) : try Self.random(client)
            let replies = try client.pipeline(
                keys.map { [Array("PTTL".utf8), $0] } + [Self.words("SNAPSHOT", "CLOSE")])
            return replies.dropLast().compactMap(\.int).filter { $0 != -2 }
        }
        guard !lives.isEmpty else { return nil }
        self.database = database.name
        count = lives.count
        minute = lives.count { (0..<60_000).contains($0) }
        hour = lives.count { (0..<3_600_000).contains($0) }
        day = lives.count { (0..<86_400_000).contains($0) }
        never = lives.count { $0 == -1 }
    }

    private static func words(_ words: String...) -> [[UInt8]] { words.map { Array($0.utf8) } }

    /// Keys at equal distances.
    private static func spread(_ client: BlockingLarderClient) throws(LarderClientError) -> [[UInt8]] {
        var keys: [[UInt8]] = []
        var cursor = "0"
        repeat {
            guard let parts = try client.command("SCAN", cursor, "COUNT", "1000").elements, parts.count == 2 else {
                break
            }
            keys += (parts[1].elements ?? []).compactMap(\.bytes)
            cursor = parts[0].string ?? "0"
        } while cursor != "0" && keys.count <= scannedMax
        let count = min(keys.count, countMost)
        return (0..<count).map { keys[$0 * keys.count / count] }
    }

    private static func random(_ client: BlockingLarderClient) throws(LarderClientError) -> [[UInt8]] {
        let drawn = try client.pipeline(Array(repeating: words("RANDOMKEY"), count: countMost))
        return Array(Set(drawn.compactMap(\.bytes)))
    }
}
