import LarderRESP
import LarderServer
import LarderTestSupport
import Testing

/// Tests that COMMAND and COMMAND DOCS return the same fields for each command and subcommand that both servers have.
@Suite struct CommandInfoTests {
    /// The fields of one entry of COMMAND. The last field contains the entries of the subcommands.
    private static let fields = [
        "name", "arity", "flags", "first key", "last key", "step", "categories", "tips", "key specifications",
        "subcommands",
    ]
    /// Subcommands that Larder has added, or that newer versions of Redis have. They are in the list of differences.
    private static let newer: Set<String> = ["client|capa", "client|no-touch", "client|setinfo", "client|no-log"]

    private static func ask(_ client: SocketClient, _ line: String) throws -> RESPValue {
        _ = try client.call("HELLO 3")
        var parser = ReplyParser()
        parser.append(Array(try client.call(line).utf8))
        return try #require(try parser.next())
    }

    private static func both(_ line: String) throws -> (redis: RESPValue, larder: RESPValue) {
        let redis = try RedisProcess()
        let daemon = try DaemonProcess(["--policy", "never"])
        return (try ask(try redis.connect(), line), try ask(try daemon.connect(), line))
    }

    /// The entries of COMMAND by their names, subcommands included.
    private static func entries(_ reply: RESPValue) throws -> [String: [RESPValue]] {
        var entries: [String: [RESPValue]] = [:]
        for entry in try #require(reply.elements) {
            let fields = try #require(entry.elements)
            try #require(fields.count == Self.fields.count)
            entries[try #require(fields[0].string)] = fields
            entries.merge(try Self.entries(fields[9])) { $1 }
        }
        return entries
    }

    /// Sorts sets, because they have no order. Removes the notes of key specifications, because each server words them
    /// differently.
    private static func normal(_ value: RESPValue, isNotes: Bool = false) -> RESPValue {
        switch value {
        case .set(let elements): .set(elements.map { normal($0) }.sorted { "\($0)" < "\($1)" })
        case .array(let elements): .array(elements.map { normal($0) })
        case .map(let pairs):
            .map(pairs.map { RESPValue.Pair(key: $0.key, value: normal($0.value, isNotes: $0.key.string == "notes")) })
        case .bulk: isNotes ? .bulk([]) : value
        default: value
        }
    }

    @Test("COMMAND describes each command as Redis does") func commands() throws {
        let (redis, larder) = try Self.both("COMMAND")
        let (expected, found) = (try Self.entries(redis), try Self.entries(larder))
        let common = Set(expected.keys).intersection(found.keys)
        #expect(common.count > 130, "\(common.count) commands are compared")
        for name in common.sorted() {
            guard let redis = expected[name], let larder = found[name] else { continue }
            for (index, field) in Self.fields.enumerated() {
                if field == "subcommands" {
                    let names = [redis, larder].map {
                        $0[index].elements?.compactMap { $0.elements?.first?.string } ?? []
                    }
                    #expect(Set(names[0]) == Set(names[1]).subtracting(Self.newer), "\(name): \(field)")
                } else {
                    #expect(Self.normal(larder[index]) == Self.normal(redis[index]), "\(name): \(field)")
                }
            }
        }
        // RedisJSON is not part of redis-server.
        let own = Set(found.keys).subtracting(expected.keys).subtracting(Self.newer).filter { !$0.hasPrefix("json.") }
        #expect(
            own == [
                "backup", "changes", "check", "databases", "delex", "digest", "edit", "entries", "explain",
                "fetch", "increx", "index", "limit",
                "meta",
                "msetex", "origin",
                "place", "policy", "purge", "query", "release", "snapshot", "snapshot|close", "snapshot|help",
                "snapshot|open",
                "tags",
                "unplace",
            ],
            "what only larderd has")
    }

    /// The documentation of COMMAND DOCS by the commands' names, subcommands included.
    private static func documents(_ reply: RESPValue) throws -> [String: [String: RESPValue]] {
        var documents: [String: [String: RESPValue]] = [:]
        for pair in try #require(reply.pairs) {
            var fields: [String: RESPValue] = [:]
            for field in try #require(pair.value.pairs) { fields[try #require(field.key.string)] = field.value }
            documents[try #require(pair.key.string)] = fields
            if let subcommands = fields["subcommands"] { documents.merge(try Self.documents(subcommands)) { $1 } }
        }
        return documents
    }

    /// Larder has its own summaries and complexities, but the version that introduced a command is the same.
    @Test("COMMAND DOCS describes each command as Redis does") func documentation() throws {
        let (redis, larder) = try Self.both("COMMAND DOCS")
        let (expected, found) = (try Self.documents(redis), try Self.documents(larder))
        for name in Set(expected.keys).intersection(found.keys).sorted() {
            guard let redis = expected[name], let larder = found[name] else { continue }
            for field in ["since", "group", "doc_flags", "deprecated_since"] {
                // Larder has no group of commands for clusters.
                if field == "group", redis[field]?.string == "cluster" { continue }
                #expect(
                    larder[field].map { Self.normal($0) } == redis[field].map { Self.normal($0) }, "\(name): \(field)")
            }
            #expect((larder["replaced_by"] == nil) == (redis["replaced_by"] == nil), "\(name): replaced_by")
            for field in ["summary", "syntax", "reply", "complexity", "arguments"] {
                #expect(larder[field] != nil, "\(name): \(field)")
            }
        }
    }
}
