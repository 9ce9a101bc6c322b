import LarderClient
import LarderPlatform

/// Reads keys and entries for the pages. Changes nothing.
struct EntryBrowser: Sendable {
    private let link: DaemonLink

    init(_ link: DaemonLink) { self.link = link }

    private static let countMax = 200
    /// The maximum number of SCAN steps of one search. After these steps, the search returns the keys found so far.
    private static let stepsMax = 20

    /// Handles `/api/keys`, with `database`, `prefix`, `cursor` and `count`. The response has the keys, each with the
    /// size in bytes, the remaining lifetime in milliseconds and the state from META, and the cursor of the next page.
    func keys(_ request: HTTPRequest) throws(LarderClientError) -> HTTPResponse {
        guard let wanted = Int(request.text("count") ?? "50"), wanted > 0 else {
            return .problem(400, "count must be a number from 1 to \(Self.countMax)")
        }
        let count = min(wanted, Self.countMax)
        let pattern = Self.escaped(request.bytes("prefix") ?? []) + Array("*".utf8)
        var cursor = request.text("cursor") ?? "0"
        let reports = try link.withClient(in: request.database) { client throws(LarderClientError) -> [JSONObject] in
            var keys: [[UInt8]] = []
            for _ in 0..<Self.stepsMax {
                let words = ["SCAN", cursor, "COUNT", "\(count - keys.count)", "MATCH"].map { Array($0.utf8) }
                let reply = try client.command(bytes: words + [pattern]).checked("SCAN")
                guard let parts = reply.elements, parts.count == 2, let next = parts[0].string else {
                    throw .unexpectedReply(to: "SCAN", "a cursor with keys")
                }
                keys += (parts[1].elements ?? []).compactMap(\.bytes)
                cursor = next
                if cursor == "0" || keys.count >= count { break }
            }
            let metas = keys.isEmpty ? [] : try client.pipeline(keys.map { [Array("META".utf8), $0] })
            return zip(keys, metas).map { key, meta in
                [
                    "key": Self.report(key: key), "size": meta.field("size")?.int, "ttl": meta.field("ttl")?.int,
                    "state": meta.field("state")?.string,
                ]
            }
        }
        return .json(["keys": reports, "next": cursor == "0" ? nil : cursor])
    }

    /// Escapes a prefix, so that the pattern matches exactly these bytes.
    private static func escaped(_ prefix: [UInt8]) -> [UInt8] {
        let special = Array("*?[]\\^-".utf8)
        return prefix.flatMap { special.contains($0) ? [UInt8(ascii: "\\"), $0] : [$0] }
    }

    private static let valueBytesMax = 262_144

    /// Handles `/api/entry`, with `database` and `key`. In the response, `now` is the time of the read by the daemon's
    /// clock. Entries that do not expire have no `deadline`, and stale ones, which only FETCH returns, no `value`.
    func entry(_ request: HTTPRequest) throws(LarderClientError) -> HTTPResponse {
        guard let key = request.bytes("key") else { return .problem(400, "key is missing") }
        let report = try link.withClient(in: request.database) { client throws(LarderClientError) -> JSONObject? in
            guard let info = try client.info(forKey: key) else { return nil }
            let range = [Array("GETRANGE".utf8), key, Array("0".utf8), Array("\(Self.valueBytesMax - 1)".utf8)]
            let value = info.isExpired ? nil : try client.command(bytes: range).bytes
            return [
                "database": request.database, "key": Self.report(key: key), "storedAt": info.storedAtMilliseconds,
                "now": info.readAtMilliseconds, "deadline": info.deadlineMilliseconds, "grace": info.graceMilliseconds,
                "rule": info.rule.name, "policy": "\(info.databasePolicy)", "size": info.byteCount,
                "codec": "\(info.codec)", "isStale": info.isExpired, "isUnverified": info.isUnverified,
                "tags": try client.tags(forKey: key) ?? [], "value": value.map(Self.report(value:)),
                "isCut": info.byteCount > Self.valueBytesMax,
            ]
        }
        return report.map { .json($0) } ?? .problem(404, "the entry does not exist, or has expired")
    }

    // MARK: Bytes that may be text

    /// Reports a key: as text if it is UTF-8, and always as hexadecimal digits, which identify it in later requests.
    static func report(key: [UInt8]) -> JSONObject {
        ["text": String(validating: key, as: UTF8.self), "hex": HexText.text(key)]
    }

    private static let binaryMax = 4_096

    /// Reports a value: as text, or its first 4,096 bytes as hexadecimal digits if it is not UTF-8 or contains control
    /// characters. Drops an incomplete last character, because the end of a long value was cut off.
    private static func report(value: [UInt8]) -> JSONObject {
        let text = (0..<4).lazy.compactMap { String(validating: value.dropLast($0), as: UTF8.self) }.first
        let isText = text?.unicodeScalars.allSatisfy { $0.value >= 0x20 || "\t\n\r".unicodeScalars.contains($0) }
        return isText == true ? ["text": text] : ["hex": HexText.text(value.prefix(binaryMax))]
    }
}
