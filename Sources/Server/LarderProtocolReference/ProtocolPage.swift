import LarderCommandCatalog
import LarderEngine
import LarderServer

/// docs/Protocol.md, generated from the command table, the limits and the list of differences. A test compares the file
/// with this, and rewrites it if `LARDER_UPDATE_DOCS` is set.
package enum ProtocolPage {
    package static var text: String {
        let prose = [
            introduction, limitsSection, errorsSection, databasesSection, transactionsSection, scriptsSection,
            changesSection,
        ]
        return (prose + groups.map(section) + [absentTypesSection, differencesSection])
            .joined(separator: "\n")
    }

    // MARK: Prose

    private static let introduction = """
        # The line protocol

        <!-- Generated from the command table by ProtocolPage.swift; `make docs` writes it. -->

        `larderd` listens on a Unix-domain socket and speaks RESP, as documented by the Redis project: inline commands (a line of words, with
        quotes as in Redis), RESP2, and RESP3 after `HELLO 3`. Requests may be pipelined, and replies come in their order. A reply is sent
        when everything that it wrote or read is committed at the daemon's durability level. Keys and values are bytes.

        A command that Redis has behaves as in Redis 7.0 for strings; [the differences](#differences-from-redis) are listed below. Each
        database has a policy, `lowest` by default, so its entries expire without an `EX`; "as in Redis" assumes the policy `never`.

        The tables below have all commands. Those of Redis reply as in Redis; `COMMAND DOCS` and larder-protocol(7) have the reply and the complexity
        of each. Commands with subcommands have `HELP`.

        ```
        $ nc -U /run/larder/larder.sock
        SET greeting "good morning" POLICY high
        +OK
        GET greeting
        $12
        good morning
        TTL greeting
        :60
        ```

        """

    private static let errorsSection = """
        ## Errors

        An error reply is one line: a code, a space, a sentence. The code is `ERR` unless another is named.

        | error | when |
        |---|---|
        | `ERR unknown command '…', with args beginning with: …` | the command does not exist; for commands of other Redis types it names the type |
        | `ERR wrong number of arguments for '…' command`, `ERR syntax error`, `ERR value is not an integer or out of range` | as in Redis |
        | `ERR Protocol error: …` | the request cannot be parsed; the connection is closed |
        | `ERR commit …: the write was not committed: …` | the disk refused the write, and it was rolled back, with all commands that waited with it |
        | `ERR update …: an earlier write failed …` | LevelDB refused committed writes; the database takes no writes until `larderd` has reopened it |
        | `NOSCRIPT No matching script. Please use EVAL.` | `EVALSHA` of an unknown script |
        | `NOTBUSY No scripts in execution right now.` | `SCRIPT KILL` without a long-running script |
        | `NOPROTO unsupported protocol version` | `HELLO` with a version other than 2 or 3 |
        | `NOPERM …` | the user lacks a right, or the command is disabled: [Security](SECURITY.md#rights) |
        | `WRONGPASS …` | a wrong password (`--password-file`), or a user other than `default` |

        """

    private static var scriptsSection: String {
        let limits = Limits()
        return """
            ## Scripts and functions

            Lua 5.1 as in Redis 7.0, on strings: `redis.call`, `pcall`, `error_reply`, `status_reply`, `sha1hex`, `log`, `setresp`, and the
            libraries `string`, `table`, `math`, `coroutine`, `cjson` and `bit`. `struct`, `cmsgpack`, `os`, `io`, `require` and bytecode do
            not exist. Errors, conversions and flags (`#!lua flags=no-writes`) are those of Redis.

            - A script is isolated and one commit unit. If it fails halfway, its earlier writes stay, as in Redis. Keys need not be declared;
              with declared keys it is faster.
            - A script that takes longer than a millisecond continues without locks, on copies, and other clients go on. Its commands are
              then run with the locks held; if an entry has changed meanwhile, the script runs again. So there is no `BUSY`, and `SCRIPT
              KILL` and `FUNCTION KILL` end any long-running script without applying anything.
            - The time does not change during a script. A script whose client has disconnected is ended. The scripts of a transaction may run
              \(Limits.scriptInTransactionMilliseconds) ms of CPU time in total. A script cannot read while `SNAPSHOT OPEN` is in effect.
            - `math.random` is seeded differently in each run. Scripts cannot change globals or libraries.
            - `redis.log` writes at most 100 lines of 1024 bytes per run; all scripts together 100, then one a second.
            - Libraries of `FUNCTION LOAD` are durable in the larder's ledger and belong to no database: `FLUSHALL` and purges keep them. A
              library is run for each call, so it cannot keep state in local variables. Names of functions are case-insensitive.

            | limit | value |
            |---|---|
            | time of a script | \(limits.scriptMilliseconds) ms (`--script-time-limit`) |
            | memory of a script | \(limits.scriptMemoryMax) bytes (`--max-script-memory`) |
            | scripts kept for `EVALSHA` | the last \(Limits.evaluatedScriptsMax) of `EVAL`, and those of `SCRIPT LOAD` by users who may `SCRIPT FLUSH`; \(limits.scriptsBytesMax) bytes (`--max-scripts`) |
            | libraries | \(limits.scriptsBytesMax) bytes (`--max-scripts`); 500 ms to register the functions of one |
            | arguments of a call; commands of a long-running script | \(limits.transactionBytesMax) bytes (`--max-transaction`) |
            | a reply | `--max-script-memory` and `--max-reply`, 1000 levels |
            | output of `cjson.encode` | a quarter of `--max-script-memory` |

            """ + "\n"
    }

    private static var limitsSection: String {
        let limits = Limits()
        let rows: [(String, String)] = [
            ("an inline command", "\(limits.requests.inlineBytesMax) bytes"),
            ("arguments of a command", "\(limits.requests.argumentsMax)"),
            ("an argument, and so a value", "\(limits.requests.bulkBytesMax) bytes"),
            ("a key", "\(Key.bytesMax) bytes"),
            ("connections", "\(limits.clientsMax) (`--max-clients`)"),
            ("databases", "\(EngineOptions().databasesMax) (`--max-databases`)"),
            (
                "values of one `MGET`, keys of one `KEYS`",
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
                "\(limits.watchedDeadlinesMax) (`--max-watched-deadlines`); beyond that, one warning is logged"
            ),
            (
                "open snapshots",
                "\(limits.snapshotsMax), each for at most \(limits.snapshotMilliseconds / 1000) s"
            ),
            ("SCAN cursors", "\(limits.scanCursorsMax), the oldest are forgotten first"),
        ]
        return "## Limits\n\n| what | limit |\n|---|---|\n"
            + rows.map { "| \($0.0) | \($0.1) |\n" }.joined() + memorySection
    }

    private static func mebibytes(_ bytes: Int) -> String { "\(bytes >> 20) MiB" }

    /// The amounts that one client can make the daemon use, and their limits.
    private static var memorySection: String {
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
                "`--max-subscriber-output`, or `client-output-buffer-limit` (`pubsub`) of `CONFIG SET`"
            ),
            (
                "values of 4 MiB and more that commands build (`APPEND`, `SETRANGE`, …)",
                "8.5 times the longest of them",
                "fixed, for all clients together"
            ),
            ("an idle connection", "16 KiB", "`--max-clients`, \(limits.clientsMax)"),
        ]
        return "\n### What one client can use\n\n| what | at most | limited by |\n|---|---|---|\n"
            + rows.map { "| \($0.0) | \($0.1) | \($0.2) |\n" }.joined() + largeValues
    }

    private static let largeValues = """

        A value of 512 MiB is in memory twice during `SET`, three times for some seconds while it is written to LevelDB, and not at all
        afterwards; `GET` takes one or two more copies. Values longer than a 32nd of `--memory` are not kept in memory. `SET`, `SETEX`,
        `PSETEX`, `SETNX` and `GETSET` of 4 MiB and more run one after the other, and other commands do not wait for them.

        """

    private static let databasesSection = """
        ## Databases and policies

        A connection begins in database `0`. `SELECT` takes `0` to `15`, as in Redis, and names: \(DatabaseName.rule). A database is created
        by its first write.

        A policy is `highest` (10 s), `high` (1 min), `middle` (1 h), `low` (24 h), `lowest` (7 days), `never`, or a number of seconds such as `90`
        or `0.5` (shown as `every:90`). An entry stored without a lifetime is *governed*: it follows the policy that its database has at the
        moment of the read. `EX`, `PX`, `EXAT`, `PXAT`, `POLICY` and the EXPIRE family give it its *own* deadline; `PERSIST` and `POLICY never`
        keep it.

        | commands | storage time (`stored-at` of `META`) | rule |
        |---|---|---|
        | `SET`, `MSET`, `SETNX`, `GETSET`, `SETEX`, `RESTORE`, `BITOP` and others that store a new value | now | as the command says, otherwise governed |
        | `APPEND`, `SETRANGE`, `INCR`, `SETBIT`, `BITFIELD` and others that change a value | now, unless `SETBIT` changes no bit | kept |
        | the EXPIRE family, `PERSIST`, `GETEX` | kept | as the command says |
        | `TOUCH`, `RENAME`, `COPY`, `MOVE` | kept | kept; a governed entry follows the policy of its new database |

        """

    private static let transactionsSection = """
        ## Transactions

        The commands between `MULTI` and `EXEC` run at one instant, isolated from all other connections, in all databases that they select. Their
        writes are one commit unit. If the commit fails, each reply is that error. As in Redis, an error of one command does not undo the
        others.

        A command on whole databases (`FLUSHDB`, `FLUSHALL`, `PURGE`, `KEYS`, `SCAN`, `DBSIZE`, `DATABASES`, `POLICY name`, `SNAPSHOT`, `INFO`, …) splits
        the transaction: the commands before it are one unit, those after it another. So do `PUBLISH` and the SUBSCRIBE family if the
        transaction has to read the disk. With a snapshot open, reads in a transaction are errors.

        `WATCH` notices every write of the key, purges, policy changes, and the expiry of a fresh entry, but not its eviction from memory.

        """

    private static let changesSection = """
        ## Changes of entries

        `larderd` publishes changes to channels for `SUBSCRIBE` and `PSUBSCRIBE`. This needs no setting and costs nothing without subscribers. DB is
        the name of the database.

        | channel | message | when |
        |---|---|---|
        | `__change@DB__:KEY` | `stored` | an entry was stored, or its lifetime changed |
        | | `removed` | an entry was removed, by its key or its prefix |
        | | `expired` | its deadline has passed |
        | `__change@DB__` | `purged` | the database was emptied |
        | | `purged TAG` | all entries with the tag are gone, or stale |
        | | `fellbehind` | everything may have changed |

        Subscribe to `__change@0__:k` and `__change@0__` for one key, or to the pattern `__change@0__:user:*` and `__change@0__` for a prefix. Other
        patterns, such as `*`, do not match these channels. Treat unknown messages as `fellbehind`.

        A change is published when it is committed, those of one key in order; a client that reads the key afterwards gets that state or a newer
        one. Expiry is published within about a second if the entry was stored while a client was subscribed, or a client subscribed to its
        key, for at most 65,536 entries; otherwise when the space is reclaimed. A slow subscriber is disconnected.

        """

    // MARK: Commands

    private static var groups: [CommandGroup] {
        var seen: [CommandGroup] = []
        for row in CommandMetadata.all where row.absent == nil && !seen.contains(row.group) { seen.append(row.group) }
        return seen
    }

    private static func section(_ group: CommandGroup) -> String {
        let name = group.rawValue
        let title = group == .larder ? "Larder's own" : name.prefix(1).uppercased() + name.dropFirst()
        // Subcommands have rows of their own, in place of their command's row.
        let specs = CommandMetadata.all.filter { $0.group == group }.flatMap { row in
            (row.runsByItself ? [row] : []) + row.subcommands.filter { !$0.name.hasSuffix("|help") }
        }
        let rows = specs.map { spec in
            let reply = group == .larder ? " \(escaped(spec.reply)) |" : ""
            return "| `\(escaped(usage(of: spec)))` | \(escaped(spec.summary)) |\(reply)\n"
        }
        guard group == .larder else {
            return "## Commands: \(title)\n\n| command | effect |\n|---|---|\n" + rows.joined()
        }
        let examples = ProtocolExamples.groups[name] ?? ""
        return "## Commands: \(title)\n\n| command | effect | reply |\n|---|---|---|\n" + rows.joined()
            + "\nFor example, under `--policy never`:\n\n```\n\(examples)\n```\n"
    }

    private static func usage(of row: CommandMetadata) -> String {
        let name = row.name.uppercased().replacing("|", with: " ")
        return ([name] + (row.syntax.isEmpty ? [] : [row.syntax])).joined(separator: " ")
    }

    /// The commands for types of values that Larder does not store.
    private static var absentTypesSection: String {
        var replies: [(text: String, names: [String])] = []
        for row in CommandMetadata.all where row.absent != nil {
            let name = "`\(row.name.uppercased())`"
            // The text above the table says this of all of them.
            let reply = row.reply.replacing("; WRONGTYPE when there is a fresh entry", with: "")
            if let index = replies.firstIndex(where: { $0.text == reply }) {
                replies[index].names.append(name)
            } else {
                replies.append((reply, [name]))
            }
        }
        let rows = replies.map { "| \(escaped($0.text)) | \($0.names.joined(separator: " ")) |\n" }
        return """
            ## Commands: Other types

            Larder stores strings only. Commands that read or remove parts of hashes, sets, sorted sets, lists, streams and places reply as
            Redis does for a missing key, or with `WRONGTYPE` for a string. Commands that store such values, or wait for one (`BLPOP`), are
            unknown. After the keys, only integers, cursors and counts are checked. In a database with an origin, the origin replies.

            | reply | commands |
            |---|---|

            """ + rows.joined()
    }

    private static func escaped(_ text: String) -> String { text.replacing("|", with: "\\|") }

    // MARK: Differences

    /// Deliberate differences from Redis that no single command shows.
    private static let differences: [String] = [
        "**Expiry**: entries without a lifetime expire by their database's policy. An entry is expired if `now >= deadline`; Redis serves it one "
            + "millisecond longer. `SET` with a past deadline sends `set`, `expire` and `expired` at once.",
        "**`expired` events**: one within a second for entries with their own deadline (at most `--max-watched-deadlines`); for governed entries "
            + "when their space is reclaimed; none for entries that expired while the daemon was down or without listeners.",
        "**Other events**: `evicted` reports evictions from the disk, `keymiss` is never sent. `SWAPDB` sends `del` and `set` for each entry. "
            + "Events follow the commit, so they may come after later replies of a pipeline. `BITFIELD` that only extends a value sends `setbit`.",
        "**`CLIENT TRACKING`** also reports tracked entries that expire, and all of them when a policy changes or an origin is lost: to clients that "
            + "have selected the database, and with `BCAST` to all that did not say `DATABASE`.",
        "**Transactions**: commands on whole databases split a transaction (see above). All values that one transaction builds may together be as "
            + "large as the longest value. With `CLIENT REPLY OFF` or `SKIP` in it, the whole reply of `EXEC` is omitted.",
        "**Counting**: `DBSIZE` is exact and counts fresh entries only; it reads all keys if LevelDB was written to. `INFO keyspace` is counted in "
            + "the background and may be a minute old (`uncounted_databases`). `expired_keys` counts an entry when it is found expired.",
        "**`SCAN`** cursors are numbers of a bounded table; an unknown one is an error. `KEYS` and `SCAN` return keys in byte order. `KEYS` is an "
            + "error if the keys exceed `--max-reply`; `SCAN` may return fewer keys than `COUNT`.",
        "**`CONFIG`**: `maxmemory` is `--memory`, so 0 means none; lowering it loses no entry. Of `client-output-buffer-limit` only `pubsub` can be "
            + "changed. `requirepass` is shown empty, and `MONITOR` hides passwords.",
        "**Persistence**: `SAVE` and `BGSAVE` write committed entries to LevelDB and sync them. `WAIT` returns 0 at once, because every reply "
            + "waits for its commit, and there are no replicas.",
        "**Versions**: `HELLO` and `INFO` report Redis \(Version.redis), because clients choose features by it; `larder_version` is larderd's. "
            + "`CLIENT LIST` has the fields of newer versions.",
        "**Disconnected clients**: waiting commands on whole databases are dropped if their client has closed the connection. `QUIT` closes the "
            + "connection also after `CLIENT REPLY OFF`.",
        "**Statistics** of `GET`, `SET`, `PING`, `MGET` and `EXISTS` are sampled, one read of a connection in sixteen; they are in `SLOWLOG` only with "
            + "thresholds below 1 ms, or if they read the disk. `CLIENT PAUSE` ends up to 0.1 s late.",
        "**`CLIENT PAUSE`** delays `expired` events as in Redis, but not invalidations of tracked keys. `DBSIZE` and reads treat entries that "
            + "expire during it as gone, and such reads count in `expired_keys`.",
        "**Requests**: a command has at most 1,048,576 arguments, as in Redis before 7.0. A bulk string that is not followed by CR LF is a protocol "
            + "error.",
    ]

    private static var differencesSection: String {
        let shown = deliberateDifferences.map { difference in
            let replies = [difference.redis, difference.larder].map { firstLine($0) }
            return
                "| \(difference.subject) | `\(escaped((difference.before + [difference.example]).joined(separator: "; ")))` | "
                + "`\(replies[0])` | `\(replies[1])` | \(escaped(difference.reason)) |\n"
        }
        return "## Differences from Redis\n\n" + differences.map { "- \($0)\n" }.joined()
            + "\nA test sends each of these commands to both servers:\n\n"
            + "| what | example | Redis 7.0 | larderd | why |\n|---|---|---|---|---|\n" + shown.joined()
    }

    private static func firstLine(_ reply: String) -> String {
        let line = reply.split(separator: "\r\n", maxSplits: 1).first.map(String.init) ?? reply
        return line == reply ? line : line + " …"
    }
}
