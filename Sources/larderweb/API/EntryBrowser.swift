import LarderClient

/// Reads keys and entries for the pages. Changes nothing.
struct EntryBrowser: Sendable {
    private let link: DaemonLink

    init(_ link: DaemonLink) { self.link = link }

    private static let countMax = 200
    /// The maximum number of SCAN steps of one search. After these steps, the search returns the keys found so far.
    private static let stepsMax = 20

    private struct KeyPage: Encodable {
        let keys: [KeyReport]
        /// The cursor of the next page; nil on the last page.
        let next: String?
    }

    /// A key in a list, with the fields of its entry from META: the size in bytes, the remaining lifetime in
    /// milliseconds, and the state.
    struct KeyReport: Encodable {
        let key: BytesReport
        let size: Int64?
        let ttl: Int64?
        let state: String?

        init(_ key: [UInt8], _ meta: RESPValue) {
            self.key = BytesReport(key: key)
            var fields: [String: RESPValue] = [:]
            for pair in meta.pairs ?? [] { fields[pair.key.string ?? ""] = pair.value }
            size = fields["size"]?.int
            ttl = fields["ttl"]?.int
            state = fields["state"]?.string
        }
    }

    /// Handles `/api/keys`, with `database`, `prefix`, `cursor` and `count`.
    func keys(_ request: HTTPRequest) throws(LarderClientError) -> HTTPResponse {
        let database = request.text("database") ?? "0"
        guard let wanted = Int(request.text("count") ?? "50"), wanted > 0 else {
            return .problem(400, "count must be a number from 1 to \(Self.countMax)")
        }
        let count = min(wanted, Self.countMax)
        let pattern = Self.escaped(request.bytes("prefix") ?? []) + Array("*".utf8)
        var cursor = Array((request.text("cursor") ?? "0").utf8)
        var keys: [[UInt8]] = []
        for _ in 0..<Self.stepsMax {
            let words = [Array("SCAN".utf8), cursor, Array("MATCH".utf8), pattern, Array("COUNT".utf8)]
            let reply = try link.command(words + [Array("\(count - keys.count)".utf8)], database: database)
            guard let parts = reply.elements, parts.count == 2, let next = parts[0].bytes else {
                throw .unexpectedReply(to: "SCAN", "a cursor with keys")
            }
            keys += (parts[1].elements ?? []).compactMap(\.bytes)
            cursor = next
            if cursor == Array("0".utf8) || keys.count >= count { break }
        }
        let metas = keys.isEmpty ? [] : try link.perform(keys.map { [Array("META".utf8), $0] }, database: database)
        return .json(
            KeyPage(
                keys: zip(keys, metas).map(KeyReport.init),
                next: cursor == Array("0".utf8) ? nil : String(decoding: cursor, as: UTF8.self)))
    }

    /// Escapes a prefix, so that the pattern matches exactly these bytes.
    private static func escaped(_ prefix: [UInt8]) -> [UInt8] {
        let special = Array("*?[]\\^-".utf8)
        return prefix.flatMap { special.contains($0) ? [UInt8(ascii: "\\"), $0] : [$0] }
    }

    // MARK: One entry

    private struct EntryReport: Encodable {
        let database: String
        let key: BytesReport
        let storedAt: Int64
        /// The time of the read by the daemon's clock, in milliseconds since 1970.
        let now: Int64
        /// Nil if the entry does not expire.
        let deadline: Int64?
        let grace: Int64
        let rule: String
        let policy: String
        let size: Int
        let codec: String
        let isStale: Bool
        /// Whether the entry cannot be verified, because the origin is not available.
        let isUnverified: Bool
        let tags: [String]
        /// Nil for a stale entry, which only FETCH returns.
        let value: BytesReport?
        /// Whether the value is truncated.
        let isCut: Bool
    }

    private static let valueBytesMax = 262_144

    /// Handles `/api/entry`, with `database` and `key`.
    func entry(_ request: HTTPRequest) throws(LarderClientError) -> HTTPResponse {
        guard let key = request.bytes("key") else { return .problem(400, "key is missing") }
        let database = request.text("database") ?? "0"
        let report = try link.withClient { client throws(LarderClientError) -> EntryReport? in
            try client.select(database)
            guard let info = try client.info(forKey: key) else { return nil }
            let range = [Array("GETRANGE".utf8), key, Array("0".utf8), Array("\(Self.valueBytesMax - 1)".utf8)]
            let value = info.isExpired ? nil : try client.command(bytes: range).bytes
            return EntryReport(
                database: database, key: BytesReport(key: key), storedAt: info.storedAtMilliseconds,
                now: info.readAtMilliseconds, deadline: info.deadlineMilliseconds, grace: info.graceMilliseconds,
                rule: info.rule.name, policy: "\(info.databasePolicy)", size: info.byteCount, codec: "\(info.codec)",
                isStale: info.isExpired, isUnverified: info.isUnverified, tags: try client.tags(forKey: key) ?? [],
                value: value.map(BytesReport.init(value:)), isCut: info.byteCount > Self.valueBytesMax)
        }
        guard let report else { return .problem(404, "the entry does not exist, or has expired") }
        return .json(report)
    }
}
