import LarderClient
import LarderQueries

extension Verb {
    static let query = Verb(
        "query", "[LIVE] [KEYS | COUNT | SELECT N PATH… | GROUP PATH …] [WHERE CONDITION…] [SORT PATH…] …",
        "find JSON entries by their fields",
        details: """
            The arguments are those of the command QUERY: see docs/Queries.md. For example:
              larderctl query select 2 title year where author = Bo sort year desc
              larderctl query group author count sum price
            Prints a table with a heading: the keys with the selected fields as JSON, or with the whole values; the
            groups with their values; or the number of entries. Without LIMIT, all entries are printed. If LIMIT cuts
            the result, the cursor for AFTER is written to standard error.
            If nothing is found, fields that no entry has are reported on standard error.
            With --json: an array of objects, with the fields as stored, or a number. The selected fields have the key as
            "@key", because a field may be named "key". Exits with 0, even if nothing is found.
            LIVE prints a line for each row (row), and then for each change (set, out, reset, end), with its key and its
            value and position or its reason. It ends with Ctrl-C, or when the daemon stops (exit code 3). With --json:
            objects of event, key, value, position and reason.
            """,
        argumentCount: 0...1_000_000
    ) { arguments, context in
        let client = try context.options.connect()
        if ShellSession.isLive(wordList("QUERY") + arguments.words) { try follow(arguments.words, client, context) }
        // The daemon explains what is wrong with a query.
        let query = try? Query(arguments.words)
        let isLimited = query?.limit != nil
        let words = arguments.words
        var table = QueryTable(query)
        var cursor: [UInt8]?
        repeat {
            let page = cursor.map { Query.words(words, after: $0) } ?? words
            cursor = table.add(try answer(wordList("QUERY") + page, client))
        } while cursor != nil && !isLimited
        table.show(context)
        if table.isEmpty {
            let explanation = try answer(wordList("EXPLAIN", "QUERY") + words, client).string ?? ""
            for line in explanation.split(separator: "\n") where line.hasPrefix("no entry has") {
                Output.standardError("\(line)\n")
            }
        }
        if let cursor { Output.standardError("more follow: AFTER \(String(decoding: cursor, as: UTF8.self))\n") }
        return .done
    }

    /// Writes the rows of a live query, and then its messages, until the connection ends.
    private static func follow(_ words: [[UInt8]], _ client: BlockingLarderClient, _ context: Context) throws -> Never {
        context.output.endWithReader()
        try client.stream(wordList("QUERY") + words) { reply in
            let message = try reply.checked("query").elements ?? []
            var parts = message.dropLast(message.continues ? 1 : 0)
            var event = "reset"
            if case .push = reply {
                event = parts.dropFirst(2).first?.string ?? ""
                parts = parts.dropFirst(3)
            } else {
                // The reply: the number of the query, and its rows.
                parts = parts.dropFirst()
            }
            if event == "reset" {
                if case .push = reply { write("reset", [], context) }
                for row in parts.first?.elements ?? [] { write("row", (row.elements ?? [row])[...], context) }
            } else {
                write(event, parts, context)
            }
            try context.output.flush()
        }
    }

    /// Writes a line for a row or a change of a live query.
    /// - Parameter parts: the key, if there is one, and what follows it.
    private static func write(_ event: String, _ parts: ArraySlice<RESPValue>, _ context: Context) {
        var rest = parts
        let key = event == "end" ? nil : rest.popFirst()?.bytes
        let (text, position) = (rest.first?.bytes, rest.last.flatMap { $0.bytes == nil ? $0.int : nil })
        let isRow = event == "row" || event == "set"
        // Line breaks in JSON are white space.
        let value = isRow ? text.map { JSONText.raw($0.map { $0 == 0x0A || $0 == 0x0D ? 0x20 : $0 }) } : nil
        let reason = isRow ? nil : text
        context.show(
            .present(["event": event, "key": key, "value": value, "position": position, "reason": reason])
        ) { output in
            let shown = [Array(event.padded(5).utf8), key, text, position.map { Array("\($0)".utf8) }]
            output.oneLine(Array(shown.compactMap(\.self).joined(separator: "  ".utf8)))
        }
    }

    static let index = Verb(
        "index", "[NAME | create NAME [PREFIX P] [GEO] ON PATH [DESC]… | drop NAME]",
        "list, create or drop indexes for queries",
        details: """
            Prints a table of the database's indexes, or of one: the paths, the prefix of the keys, the state with the
            progress while the index is built, the number of terms of all entries, and how many of these are stale; or OK.
            With --json: an array of objects; after a change {"done":true}.
            """,
        argumentCount: 0...1_000_000
    ) { arguments, context in
        let reply = try answer([Array("INDEX".utf8)] + arguments.words, try context.options.connect())
        guard let indexes = reply.elements else {
            context.show(["done": true], text: "OK")
            return .done
        }
        let names = ["name", "paths", "prefix", "state", "percent", "entries", "stale"]
        let rows = indexes.map { index in names.map { index.field($0) ?? .null } }
        context.show(.array(rows.map { row in .object(zip(names, row).map { ($0, JSONText($1)) }) })) { output in
            let texts = rows.map { row in
                let isReady = row[3].string == "ready"
                let paths = (row[1].elements ?? []).compactMap(\.string).joined(separator: " ")
                let state = isReady ? "ready" : "\(row[3].string ?? "?") \(row[4].int ?? 0) %"
                return [row[0].string ?? "?", paths, row[2].string ?? "?", state]
                    + row[5...].map { "\($0.int ?? 0)" }
            }
            output.table([["NAME", "PATHS", "PREFIX", "STATE", "ENTRIES", "STALE"]] + texts, rightAligned: [4, 5])
        }
        return .done
    }

    /// Sends a command, and returns its reply. Throws if the reply is an error.
    private static func answer(_ words: [[UInt8]], _ client: BlockingLarderClient) throws -> RESPValue {
        let operation = String(decoding: words[0], as: UTF8.self).lowercased()
        return try ShellSession(client).run([words]).first?.checked(operation) ?? .null
    }
}

/// The rows of a query's result.
private struct QueryTable {
    private let heading: [String]
    /// The names of the columns in JSON.
    private let names: [String]
    private let isOfGroups: Bool
    private var rows: [[RESPValue]] = []
    private var count: Int64?

    /// Whether nothing was found.
    var isEmpty: Bool { rows.isEmpty && (count ?? 0) == 0 }

    init(_ query: Query?) {
        let query = query ?? Query()
        heading = query.columns
        isOfGroups = if case .groups = query.output { true } else { false }
        names =
            switch query.output {
            case .rows: ["key", "value"]
            case .keys: ["key"]
            case .select: ["@key"] + heading.dropFirst()
            case .count, .groups: heading
            }
    }

    /// Adds a reply.
    /// - Returns: the cursor of the next page; nil if there is none.
    mutating func add(_ reply: RESPValue) -> [UInt8]? {
        if case .integer(let number) = reply {
            count = number
            return nil
        }
        let elements = reply.elements ?? []
        if isOfGroups {
            rows += elements.map { $0.elements ?? [] }
            return nil
        }
        for row in elements.last?.elements ?? [] {
            let parts = row.elements ?? [row]
            rows.append(parts.flatMap { $0.elements ?? [$0] })
        }
        return elements.first?.bytes
    }

    func show(_ context: Context) {
        if let count {
            context.show(.integer(count)) { $0.line("\(count)") }
            return
        }
        context.show(.array(rows.map(json))) { output in
            let texts = rows.map { row in row.map(Self.text) }
            output.table([heading] + texts, rightAligned: [])
        }
    }

    /// A row as an object, with the fields as they are stored.
    private func json(_ row: [RESPValue]) -> JSONText {
        var members: [(String, JSONText)] = []
        for (index, (name, value)) in zip(names, row).enumerated() {
            let isKey = index == 0 && !isOfGroups
            // @key is also a path that may be selected.
            if members.contains(where: { $0.0 == name }) { continue }
            members.append((name, value.bytes.map { isKey ? JSONText(value) : .raw($0) } ?? JSONText(value)))
        }
        return .object(members)
    }

    private static func text(_ value: RESPValue) -> String {
        if value.isNull { return "-" }
        return value.bytes.map { String(decoding: $0, as: UTF8.self) } ?? value.int.map { "\($0)" } ?? "?"
    }
}
