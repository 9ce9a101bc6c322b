import LarderClient
import LarderRESP

/// Imports the strings of a Redis into a daemon, while other clients may use both. For one thread at a time.
///
/// A value and its time to live are read in one transaction. The time to live counts from before the request, so no
/// entry expires later than in Redis. Values are read in groups of at most ``groupBytes``.
struct RedisImport {
    struct Report {
        var imported = 0
        /// The number of keys that expired or were removed before they could be read.
        var gone = 0
        /// The number of keys that were not imported, because they exist in the larder and ``keepsExisting`` is set.
        var kept = 0
        /// The number of keys of other types than strings, by type.
        var otherTypes: [String: Int] = [:]
        /// The number of keys that are too long for a larder.
        var tooLong = 0
        /// Examples of keys that were not imported.
        var examples: [String] = []
    }

    let redis: RedisServer
    let client: BlockingLarderClient
    let prefix: [UInt8]
    let keepsExisting: Bool
    let progress = ProgressLine(.entries)
    private(set) var total = 0
    private(set) var done = 0
    private(set) var report = Report()

    private static let groupCount = 128
    private static let groupBytes = 4 << 20
    private static let examplesMax = 5

    /// Returns the numbers of those databases in the Redis that have keys, each with the count of its keys.
    static func databases(_ redis: RedisServer) throws(Failure) -> [(number: Int, keys: Int)] {
        // Each line has the form `db0:keys=1,expires=0`.
        InfoText(try redis.command(["INFO", "keyspace"]).string ?? "").textLists("db").compactMap { number, parts in
            let keys = parts.first { $0.name == "keys" }.flatMap { Int($0.text) }
            return Int(number).map { ($0, keys ?? 0) }
        }
    }

    /// - Parameter databases: for each one, its number in the Redis, the count of its keys, and its name in the larder.
    mutating func run(_ databases: [(number: Int, keys: Int, name: String)]) throws {
        defer { progress.end() }
        total = prefix.isEmpty ? databases.reduce(0) { $0 + $1.keys } : 0
        for database in databases {
            try redis.select(database.number)
            try client.select(database.name)
            try importSelected()
        }
    }

    private mutating func importSelected() throws {
        let pattern = Self.pattern(prefix)
        var cursor = Array("0".utf8)
        repeat {
            var words = [Array("SCAN".utf8), cursor, Array("COUNT".utf8), Array("512".utf8)]
            if !prefix.isEmpty { words += [Array("MATCH".utf8), pattern] }
            let reply = try redis.checked(try redis.exchange([words])[0])
            guard let parts = reply.elements, parts.count == 2, let next = parts[0].bytes, let keys = parts[1].elements
            else { throw Failure.redis("malformed reply to SCAN") }
            try take(keys.compactMap(\.bytes))
            cursor = next
        } while cursor != Array("0".utf8)
    }

    /// Returns the glob pattern for keys with a prefix.
    private static func pattern(_ prefix: [UInt8]) -> [UInt8] {
        prefix.flatMap { byte in Array("*?[]\\".utf8).contains(byte) ? [UInt8(ascii: "\\"), byte] : [byte] }
            + [UInt8(ascii: "*")]
    }

    private mutating func take(_ keys: [[UInt8]]) throws {
        let lengths = try redis.exchange(keys.map { [Array("STRLEN".utf8), $0] })
        var others: [[UInt8]] = []
        var group: [[UInt8]] = []
        var bytes = 0
        for (key, length) in zip(keys, lengths) {
            if Self.isOtherType(length) {
                others.append(key)
                continue
            }
            let length = Int(try redis.checked(length).int ?? 0)
            if key.count > CarriedEntry.keyBytesMax {
                report.tooLong += 1
                note(key)
                continue
            }
            if group.count == Self.groupCount || (!group.isEmpty && bytes + length > Self.groupBytes) {
                try copy(group)
                (group, bytes) = ([], 0)
            }
            group.append(key)
            bytes += length
        }
        try copy(group)
        try count(others)
        done += keys.count
        progress.show(done: done, total: total)
    }

    private static func isOtherType(_ reply: RESPValue) -> Bool { reply.errorMessage?.hasPrefix("WRONGTYPE") ?? false }

    private mutating func count(_ keys: [[UInt8]]) throws {
        for (key, reply) in zip(keys, try redis.exchange(keys.map { [Array("TYPE".utf8), $0] })) {
            report.otherTypes[try redis.checked(reply).string ?? "?", default: 0] += 1
            note(key)
        }
    }

    private mutating func note(_ key: [UInt8]) {
        if report.examples.count < Self.examplesMax { report.examples.append(printableKey(key)) }
    }

    private mutating func copy(_ keys: [[UInt8]]) throws {
        guard !keys.isEmpty else { return }
        let reads = keys.flatMap { [[Array("GET".utf8), $0], [Array("PTTL".utf8), $0]] }
        let asked = Exporter.now()
        let replies = try redis.exchange([[Array("MULTI".utf8)]] + reads + [[Array("EXEC".utf8)]])
        guard let results = try redis.checked(replies[replies.count - 1]).elements, results.count == reads.count else {
            throw Failure.redis("malformed reply to EXEC")
        }
        let requests = try keys.enumerated().compactMap { index, key in
            try request(key, results[2 * index], results[2 * index + 1], asked)
        }
        for reply in try client.pipeline(requests) {
            if let text = reply.errorMessage { throw LarderClientError.server(text, operation: "import") }
            if reply.isNull { report.kept += 1 } else { report.imported += 1 }
        }
    }

    /// Returns the command that stores an entry; nil if the entry must not be stored.
    private mutating func request(_ key: [UInt8], _ value: RESPValue, _ life: RESPValue, _ asked: Int64) throws
        -> [[UInt8]]?
    {
        if Self.isOtherType(value) {
            try count([key])
            return nil
        }
        let left = try redis.checked(life).int ?? -2
        guard let bytes = try redis.checked(value).bytes, left > 0 || left == -1 else {
            report.gone += 1
            return nil
        }
        var words = [Array("SET".utf8), key, bytes]
        if left > 0 { words += [Array("PXAT".utf8), Array("\(asked + left)".utf8)] }
        if keepsExisting { words.append(Array("NX".utf8)) }
        return words
    }
}
