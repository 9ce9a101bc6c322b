import LarderClient
import LarderPlatform
import LarderVocabulary

extension Verb {
    static let keys = Verb(
        "keys", "[PATTERN]", "list the keys of the database's entries",
        details: """
            In a pattern, * matches any characters, ? one, [a-c] one of these; quote it for the shell.
            Prints one key per line (with -0: each terminated by a zero byte, for xargs -0), in no particular order.
            Entries stored or removed during the listing may or may not be included. With --json: an array of keys.
            With --long: a table in the order of keys, including stale entries, with the size of the value, the
            remaining lifetime, the policy (own: its own lifetime) and the state; sizes are in bytes, except on a
            terminal. It also reads the values. With --json, one object per line:
            {"key":…,"size":…,"ttl":…,"deadline":…,"stored-at":…,"rule":…,"state":…,"codec":…,"tags":[…]}, in
            milliseconds, null for never.
            Exits with 0, even if there are none.
            """,
        options: [
            OptionSpec("--null", nil, "terminate each key with a zero byte, without escaping", short: "-0"),
            OptionSpec("--long", nil, "with size, remaining lifetime, policy and state", short: "-l"),
        ],
        argumentCount: 0...1
    ) { arguments, context in
        let (output, json) = (context.output, context.options.json)
        let endsWithZero = arguments["--null"] != nil
        if endsWithZero, json { throw UsageError("--null and --json cannot be combined") }
        try arguments.refuse("--null", with: "--long")
        let client = try context.options.connect()
        if arguments["--long"] != nil {
            try LongListing(client: client, context: context).write(matching: arguments.words.first)
            return .done
        }
        var separator = "["
        try client.forEachKey(matching: arguments.words.first) { key in
            if json {
                output.bytes(separator.utf8)
                separator = ","
                output.jsonPart(.bytes(key))
            } else if endsWithZero {
                output.bytes(key + [0])
            } else {
                output.oneLine(key)
            }
            try output.flushIfLarge()
            return true
        }
        if json { output.line(separator == "[" ? "[]" : "]") }
        return .done
    }
}

/// The output of `keys --long`: entries with size, lifetime, policy and state, ordered by key.
///
/// Memory does not grow with the database: the entries in a reply to ENTRIES are written before the next request.
struct LongListing {
    let client: BlockingLarderClient
    let context: Context

    /// - Parameter pattern: the glob pattern of the keys to list; nil for all.
    func write(matching pattern: [UInt8]?) throws {
        let glob = pattern.map { GlobPattern($0) }
        let policy = try client.policyInfo().policy
        if !context.options.json { context.output.line(Self.line("SIZE", "EXPIRES IN", "POLICY", "STATE") + "KEY") }
        try EntryReader(client: client, prefix: glob?.fixedPrefix ?? []).forEachStep { entries in
            // The daemon's time, with which deadlines are compared.
            let now = InfoText(try client.serverInfo(section: "server")).integer("server_time_usec") / 1000
            for entry in entries where glob?.matches(entry.key) ?? true {
                write(entry, policy, now: now)
                try context.output.flushIfLarge()
            }
        }
    }

    private func write(_ entry: StoredEntry, _ policy: String, now: Int64) {
        let deadline = entry.deadline < 0 ? nil : entry.deadline
        let left = deadline.map { $0.subtractingReportingOverflow(now).partialValue }
        let state = left.map { $0 > 0 } ?? true ? "fresh" : "stale"
        context.show([
            "key": entry.key, "size": entry.value.count, "ttl": left, "deadline": deadline,
            "stored-at": entry.storedAt, "rule": entry.rule, "state": state, "codec": entry.codec,
            "tags": entry.tags,
        ]) { output in
            let size = output.size(Int64(entry.value.count))
            let rule = entry.rule == "governed" ? policy : entry.rule
            let line = Self.line(size, left.map { TimeText.short($0) } ?? "never", rule, state)
            output.oneLine(Array(line.utf8) + entry.key)
        }
    }

    /// Formats a line. Columns have fixed widths, because later lines are unknown. A longer field moves those after it.
    private static func line(_ size: String, _ left: String, _ policy: String, _ state: String) -> String {
        size.padded(9, isRight: true) + "  " + left.padded(10, isRight: true) + "  " + policy.padded(9) + "  "
            + state.padded(5) + "  "
    }
}
