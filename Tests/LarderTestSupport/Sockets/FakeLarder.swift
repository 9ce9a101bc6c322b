import LarderPlatform
import LarderRESP

/// A minimal daemon for the client's calls: entries in memory that never expire, and canned replies for Larder's own
/// commands. It speaks RESP3.
///
/// Thread-safe. `@unchecked Sendable`: `entries` is guarded by `lock`.
package final class FakeLarder: @unchecked Sendable {
    private let lock = Lock()
    private var entries: [[UInt8]: [UInt8]] = [:]
    /// The number of keys per reply of `SCAN`.
    private let scanCount: Int

    package init(scanCount: Int = 2) { self.scanCount = scanCount }

    /// Starts a server whose replies come from `larder`.
    package static func server(_ larder: FakeLarder = FakeLarder()) throws -> FakeServer {
        try FakeServer { larder.answer($0) }
    }

    package static let storedAt: Int64 = 1_769_903_999_999

    private func answer(_ request: FakeServer.Request) -> FakeServer.Answer {
        if ["HELLO", "SELECT"].contains(request.name.uppercased()) { return .standard }
        var output = ReplyBuffer(version: .three)
        lock.withLock { write(request.name.uppercased(), Array(request.words.dropFirst()), &output) }
        return .bytes(output.take())
    }

    private func write(_ name: String, _ arguments: [[UInt8]], _ output: inout ReplyBuffer) {
        switch (name, arguments.count) {
        case ("PING", 0): output.simple("PONG")
        case ("SET", 2...):
            entries[arguments[0]] = arguments[1]
            output.simple("OK")
        case ("GET", 1): writeValue(of: arguments[0], &output)
        case ("MGET", 1...):
            output.array(count: arguments.count)
            for key in arguments { writeValue(of: key, &output) }
        case ("MSET", 2...):
            for index in stride(from: 0, to: arguments.count - 1, by: 2) {
                entries[arguments[index]] = arguments[index + 1]
            }
            output.simple("OK")
        case ("MSETEX", 3...):
            let count = Int(String(decoding: arguments[0], as: UTF8.self)) ?? 0
            for index in 0..<count { entries[arguments[1 + 2 * index]] = arguments[2 + 2 * index] }
            output.integer(1)
        case ("DEL", 1...): output.integer(arguments.count { entries.removeValue(forKey: $0) != nil })
        case ("EXISTS", 1): output.integer(entries[arguments[0]] == nil ? 0 : 1)
        case ("PTTL", 1): output.integer(timeToLive(of: arguments[0]))
        case ("SCAN", 1...): writeScan(arguments, &output)
        default: writeOfLarder(name, arguments, &output)
        }
    }

    private func writeOfLarder(_ name: String, _ arguments: [[UInt8]], _ output: inout ReplyBuffer) {
        switch (name, arguments.count) {
        case ("META", 1): writeMeta(of: arguments[0], &output)
        case ("POLICY", 0): write([("policy", "every 90"), ("interval", 90_000)], &output)
        case ("POLICY", 1), ("SHUTDOWN", _): output.simple("OK")
        case ("DATABASES", 0):
            output.array(count: 2)
            write(
                [
                    ("name", "0"), ("policy", "lowest"), ("interval", 604_800_000), ("entries", 3), ("bytes", 120),
                    ("state", "open"),
                ], &output)
            write(
                [
                    ("name", "userdb"), ("policy", "never"), ("interval", -1), ("entries", 61_234),
                    ("bytes", 9_876_543), ("state", "closed"),
                ], &output)
        case ("PURGE", 0...2):
            write([("entries", 3), ("bytes", 120), ("milliseconds", 1)], &output)
        case ("INFO", 0...1):
            output.verbatim(
                "# Server\r\nname:larderd\r\nversion:0.1.0\r\n\r\n# Load Now\r\nratio:0.25\r\nclients:2\r\n")
        case ("STRLEN", 1): output.integer(entries[arguments[0]]?.count ?? 0)
        case ("COMMAND", 0): writeNested(&output)
        default: output.error("ERR unknown command '\(name)'")
        }
    }

    private func writeValue(of key: [UInt8], _ output: inout ReplyBuffer) {
        if let value = entries[key] { output.bulk(value) } else { output.null() }
    }

    /// Returns the remaining lifetime in milliseconds; -1 if the entry does not expire, -2 if there is none. Entries
    /// whose key begins with `own` have 12.345 seconds left; all others do not expire.
    private func timeToLive(of key: [UInt8]) -> Int {
        if entries[key] == nil { return -2 }
        return key.starts(with: "own".utf8) ? 12_345 : -1
    }

    private func writeMeta(of key: [UInt8], _ output: inout ReplyBuffer) {
        guard let value = entries[key] else { return output.null() }
        let left = Int64(timeToLive(of: key))
        write(
            [
                ("stored-at", Self.storedAt), ("age", 1_500),
                ("deadline", left < 0 ? -1 : Self.storedAt + 1_500 + left), ("ttl", left),
                ("rule", left < 0 ? "governed" : "own"), ("policy", "never"), ("size", Int64(value.count)),
                ("codec", "json"), ("state", "fresh"), ("of-a-newer-server", "ignored"),
            ], &output)
    }

    /// Writes the reply of SCAN. Cursors are positions among the sorted keys. The only supported patterns have the form
    /// `x*`.
    private func writeScan(_ arguments: [[UInt8]], _ output: inout ReplyBuffer) {
        let start = Int(String(decoding: arguments[0], as: UTF8.self)) ?? 0
        let pattern = arguments.firstIndex(of: Array("MATCH".utf8)).map { arguments[$0 + 1] }
        let keys = entries.keys.sorted { $0.lexicographicallyPrecedes($1) }
        let step = keys.dropFirst(start).prefix(scanCount)
        let end = start + step.count
        output.array(count: 2)
        output.bulk(end >= keys.count ? "0" : "\(end)")
        let found = step.filter { key in pattern.map { key.starts(with: $0.prefix { $0 != UInt8(ascii: "*") }) } ?? true
        }
        output.array(count: found.count)
        for key in found { output.bulk(key) }
    }

    private func writeNested(_ output: inout ReplyBuffer) {
        output.array(count: 4)
        output.integer(1)
        output.null()
        output.map(count: 2)
        output.simple("name")
        output.bulk("one")
        output.simple("flags")
        output.set(count: 2)
        output.simple("fast")
        output.double(0.5)
        output.error("ERR inner")
    }

    private func write(_ fields: [(String, any FieldValue)], _ output: inout ReplyBuffer) {
        output.map(count: fields.count)
        for (name, value) in fields {
            output.bulk(name)
            value.write(to: &output)
        }
    }
}

private protocol FieldValue {
    func write(to output: inout ReplyBuffer)
}

extension String: FieldValue {
    fileprivate func write(to output: inout ReplyBuffer) { output.bulk(self) }
}

extension Int64: FieldValue {
    fileprivate func write(to output: inout ReplyBuffer) { output.integer(self) }
}

extension Int: FieldValue {
    fileprivate func write(to output: inout ReplyBuffer) { output.integer(self) }
}
