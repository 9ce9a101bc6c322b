import LarderCommandCatalog
import LarderEngine
import LarderQuerying
import LarderServer

/// The tables of docs/Protocol.md, generated from the command table, the limits, and the list of differences. A test
/// compares the page with these tables, or rewrites the page if `LARDER_UPDATE_DOCS` is set.
enum ProtocolTables {
    /// The tables by the names in the page's markers.
    static var all: [String: String] {
        var tables = [
            "limits": limits, "memory": memory, "scripts": scripts, "commands: Other types": absentTypes,
            "differences": differences,
        ]
        for row in CommandMetadata.all where row.absent == nil {
            let name = row.group.rawValue
            let title =
                switch row.group {
                case .larder: "Larder's own"
                case .json: "JSON"
                default: name.prefix(1).uppercased() + name.dropFirst()
                }
            tables["commands: \(title)"] = tables["commands: \(title)"] ?? commands(row.group)
        }
        return tables
    }

    private static func table(_ head: String, _ rows: some Sequence<String>) -> String {
        let columns = head.split(separator: "|").count
        return "\(head)\n\(String(repeating: "|---", count: columns))|\n" + rows.joined()
    }

    // MARK: Limits

    private static var limits: String {
        let limits = Limits()
        let rows: [(String, String)] = [
            ("an inline command", "\(limits.requests.inlineBytesMax) bytes"),
            ("arguments of a command", "\(limits.requests.argumentsMax)"),
            ("an argument, and so a value", "\(limits.requests.bulkBytesMax) bytes"),
            ("a key", "\(Key.bytesMax) bytes"),
            ("connections", "\(limits.clientsMax) (`--max-clients`)"),
            ("databases", "\(EngineOptions().databasesMax) (`--max-databases`)"),
            (
                "values of one `MGET`, keys of one `KEYS`, replies of `EXEC`",
                "\(limits.replyBytesMax) bytes (`--max-reply`), then an error"
            ),
            (
                "keys of one `SCAN`",
                "\(Limits.scanCountMax) entries, or \(Limits.scanBytesMax) bytes of keys"
            ),
            (
                "entries of one `ENTRIES`",
                "\(Limits.entriesCountMax) entries, or \(Limits.scanBytesMax) bytes, and one entry beyond"
            ),
            (
                "unread replies of a client",
                "\(limits.outputBytesPause) bytes, then its requests are not read; disconnected after "
                    + "\(limits.outputStallMilliseconds / 1000) s without progress (`--reply-timeout`)"
            ),
            (
                "unread messages of a subscriber",
                "\(limits.subscriberBytesMax) bytes (`--max-subscriber-output`), then it is disconnected; "
                    + "also with more than \(limits.subscriberBytesSoft) for "
                    + "\(limits.subscriberSoftMilliseconds / 1000) s"
            ),
            (
                "unread output of all clients",
                "an eighth of the machine's memory, at least 1 GiB (`--max-output`), then those with the most are "
                    + "disconnected (`evicted_clients` in `INFO`)"
            ),
            ("messages waiting for busy event loops", "\(limits.undeliveredBytesMax) bytes, then publishers wait"),
            ("writes waiting to be committed", "\(EngineOptions().pendingBytesMax) bytes, then commands wait"),
            (
                "journal that is not in LevelDB yet",
                "\(2 * EngineOptions().checkpointBytes) bytes, not counting one long value, then commands wait; "
                    + "an error while checkpoints fail"
            ),
            (
                "commands between MULTI and EXEC",
                "\(limits.transactionBytesMax) bytes for each connection (`--max-transaction`), then an error, and EXEC "
                    + "refuses"
            ),
            ("watched keys", "\(limits.watchedKeysMax) for each connection (`--max-watched-keys`), then an error"),
            (
                "leases",
                "\(limits.leasesMax) for each connection (`--max-leases`), \(LeaseContext.leasesMax) for all, then an error"
            ),
            ("clients that wait in FETCH", "\(LeaseContext.waitersMax), then an error"),
            (
                "channels and patterns subscribed to",
                "\(limits.subscriptionBytesMax) bytes of names for each connection (`--max-subscriptions`), each name with "
                    + "\(Limits.subscriptionOverheadBytes) more, then an error; the same for prefixes of CLIENT TRACKING"
            ),
            (
                "keys tracked for `CLIENT TRACKING`",
                "\(limits.trackedKeysMax) of all connections (`--max-tracked-keys`, `tracking-table-max-keys`), then some "
                    + "are reported as changed"
            ),
            (
                "deadlines watched for `expired`",
                "\(limits.deadlineBytesMax) bytes for the nearest ones; later ones are found again when they are near"
            ),
            (
                "open snapshots",
                "\(limits.snapshotsMax), each for at most \(limits.snapshotMilliseconds / 1000) s"
            ),
            ("SCAN cursors", "\(limits.scanCursorsMax), the oldest are forgotten first"),
        ]
        return table("| what | limit |", rows.map { "| \($0.0) | \($0.1) |\n" })
    }

    private static func mebibytes(_ bytes: Int) -> String { "\(bytes >> 20) MiB" }

    /// The amounts of memory that one client can make the daemon use, and their limits.
    private static var memory: String {
        let limits = Limits()
        let output = mebibytes(limits.outputBytesPause)
        let rows: [(String, String, String)] = [
            (
                "an incomplete request",
                "up to twice the bytes that arrived; at most "
                    + mebibytes(limits.requests.requestBytesMax),
                "fixed, like the \(mebibytes(limits.requests.bulkBytesMax)) of one argument"
            ),
            ("pipelined requests while replies are unread", mebibytes(limits.inputBytesPause), "fixed"),
            (
                "unread replies", "\(output), and one reply beyond",
                "`--max-reply`, `--reply-timeout`"
            ),
            (
                "unread messages", mebibytes(limits.subscriberBytesMax),
                "`--max-subscriber-output`, `client-output-buffer-limit`"
            ),
            (
                "values of 4 MiB and more that commands build (`APPEND`, `SETRANGE`, …)",
                "8.5 times the longest of them",
                "fixed, for all clients together"
            ),
            (
                "live queries with their rows",
                "\(mebibytes(QueryLimits().liveBytesMax)) for all clients together; 1,000 of them", "fixed"
            ),
            ("an idle connection", "16 KiB", "`--max-clients`, \(limits.clientsMax)"),
        ]
        return table("| what | at most | limited by |", rows.map { "| \($0.0) | \($0.1) | \($0.2) |\n" })
    }

    private static var scripts: String {
        let limits = Limits()
        return """
            | limit | value |
            |---|---|
            | time of a script | \(limits.scriptMilliseconds) ms (`--script-time-limit`) |
            | memory of a script | \(limits.scriptMemoryMax) bytes (`--max-script-memory`) |
            | scripts kept for `EVALSHA` | the last \(Limits.evaluatedScriptsMax) of `EVAL`, and those of `SCRIPT LOAD` by users who may `SCRIPT FLUSH`; \(limits.scriptsBytesMax) bytes (`--max-scripts`) |
            | libraries | \(limits.scriptsBytesMax) bytes (`--max-scripts`); 500 ms to register the functions of one |
            | arguments of a call; commands of a long-running script | \(limits.transactionBytesMax) bytes (`--max-transaction`) |
            | a reply | limited by `--max-script-memory` and `--max-reply`; at most 1000 nested levels |
            | output of `cjson.encode` | a quarter of `--max-script-memory` |

            """
    }

    // MARK: Commands

    private static func commands(_ group: CommandGroup) -> String {
        // List subcommands separately, instead of their command.
        let specs = CommandMetadata.all.filter { $0.group == group }.flatMap { row in
            (row.runsByItself ? [row] : []) + row.subcommands.filter { !$0.name.hasSuffix("|help") }
        }
        // These work as in Redis or in RedisJSON, whose pages explain them.
        if [.bitmap, .json, .pubsub, .transactions].contains(group) {
            return specs.map { "`\(usage(of: $0))`" }.joined(separator: ",\n") + "\n"
        }
        let rows = specs.map { spec in
            let reply = group == .larder ? " \(escaped(spec.reply)) |" : ""
            return "| `\(escaped(usage(of: spec)))` | \(escaped(spec.summary)) |\(reply)\n"
        }
        return table(group == .larder ? "| command | effect | reply |" : "| command | effect |", rows)
    }

    private static func usage(of row: CommandMetadata) -> String {
        let name = row.name.uppercased().replacing("|", with: " ")
        return ([name] + (row.syntax.isEmpty ? [] : [row.syntax])).joined(separator: " ")
    }

    /// The commands for types of values that Larder does not store.
    private static var absentTypes: String {
        var replies: [(text: String, names: [String])] = []
        for row in CommandMetadata.all where row.absent != nil {
            let name = "`\(row.name.uppercased())`"
            // Remove this part, because the text above the table states it for all of these commands.
            let reply = row.reply.replacing("; WRONGTYPE when there is a fresh entry", with: "")
            if let index = replies.firstIndex(where: { $0.text == reply }) {
                replies[index].names.append(name)
            } else {
                replies.append((reply, [name]))
            }
        }
        let rows = replies.map { "| \(escaped($0.text)) | \($0.names.joined(separator: " ")) |\n" }
        return table("| reply | commands |", rows)
    }

    private static func escaped(_ text: String) -> String { text.replacing("|", with: "\\|") }

    // MARK: Differences

    private static var differences: String {
        let shown = deliberateDifferences.map { difference in
            let replies = [difference.redis, difference.larder].map { firstLine($0) }
            return
                "| \(difference.subject) | `\(escaped((difference.before + [difference.example]).joined(separator: "; ")))` | "
                + "`\(replies[0])` | `\(replies[1])` | \(escaped(difference.reason)) |\n"
        }
        return table("| what | example | Redis 7.0 | larderd | why |", shown)
    }

    private static func firstLine(_ reply: String) -> String {
        let line = reply.split(separator: "\r\n", maxSplits: 1).first.map(String.init) ?? reply
        return line == reply ? line : line + " …"
    }
}
