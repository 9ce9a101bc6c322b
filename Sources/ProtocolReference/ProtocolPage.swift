import CommandCatalog
import LarderEngine
import LarderServer

/// docs/Protocol.md, generated from the command table, the limits and the list of differences. A test compares the file
/// with this, and rewrites it if `LARDER_UPDATE_DOCS` is set.
package enum ProtocolPage {
    package static var text: String {
        ([introduction, examples, limitsSection, settingsSection, errorsSection, databasesSection, transactionsSection]
            + groups.map(section) + [differencesSection])
            .joined(separator: "\n")
    }

    // MARK: Prose

    private static let introduction = """
        # The line protocol

        <!-- Made from the command table by ProtocolPage.swift; `make docs` writes it anew. -->

        `larderd` listens on a Unix-domain socket and speaks RESP, as documented by the Redis project:

        - *inline commands*: a line of words, ended by a newline, words with blanks in quotes (`"…"` with `\\n`, `\\r`,
          `\\t`, `\\"`, `\\\\`, `\\xHH`; `'…'` with `\\'`). One can type them.
        - *RESP2*: an array of bulk strings, which is what client libraries send.
        - *RESP3*, for replies, after `HELLO 3`.

        Requests may be pipelined; replies come in the order of the requests. A reply leaves only when everything it wrote
        or read is committed at the daemon's durability level. Values are bytes; keys are bytes, compared byte by byte.

        A command that Redis has behaves as in Redis for string values. Where a database has a policy (and each has one,
        `lowest` unless said otherwise) its entries expire without an `EX`; "as Redis" is meant under the policy `never`.

        """

    private static let examples = """
        ## By hand

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

    /// The daemon's options that CONFIG has too.
    private static var settingsSection: String {
        let rows = DaemonOption.all.filter { !$0.settingNames.isEmpty }.map { option in
            let names = option.settingNames.map { $0.isChangeable ? "`\($0.name)`" : "`\($0.name)` (shown only)" }
            return "| `\(option.usage)` | \(names.joined(separator: ", ")) | \(option.help.joined(separator: " ")) |\n"
        }
        return """
            ## Options and settings

            What larderd is started with, and the names under which `CONFIG GET` shows it; `CONFIG SET` changes what is not
            marked, until the daemon ends.

            | option | setting | what it is |
            |---|---|---|

            """ + rows.joined() + "\n"
    }

    private static let errorsSection = """
        ## Errors

        An error reply is one line: a code, a blank, a sentence. `ERR` is the code unless another is named.

        | error | when |
        |---|---|
        | `ERR unknown command '…', with args beginning with: …` | there is no such command; commands of other types than strings do not exist |
        | `ERR wrong number of arguments for '…' command` | the table below says how many |
        | `ERR syntax error`, `ERR value is not an integer or out of range`, `ERR invalid expire time in '…' command` | as in Redis |
        | `ERR Protocol error: …` | the request cannot be read; the connection is closed after it |
        | `ERR commit …: the write was not committed: …` | the disk refused it, and it is taken back; every command that was waiting with it gets this reply |
        | `ERR update …: an earlier write failed …` | LevelDB refused what was committed before; this database takes no writes until it could be reopened, which is tried again and again |
        | `NOPROTO unsupported protocol version` | `HELLO` with something else than 2 or 3 |
        | `WRONGPASS …` | `AUTH` or `HELLO … AUTH` with a wrong password, or another user than `default`, the only one (`--password-file`) |

        """

    private static var limitsSection: String {
        let limits = Limits()
        let rows: [(String, String)] = [
            ("an inline command", "\(limits.requests.inlineBytesMax) bytes"),
            ("words of a command", "\(limits.requests.argumentsMax)"),
            ("a word, and so a value", "\(limits.requests.bulkBytesMax) bytes"),
            ("a key", "\(Key.bytesMax) bytes"),
            ("connections", "\(limits.clientsMax) (`--max-clients`)"),
            ("databases", "\(EngineOptions().databasesMax) (`--max-databases`)"),
            (
                "the values of one `MGET` together, the keys of one `KEYS`",
                "\(limits.replyBytesMax) bytes (`--max-reply`), then an error"
            ),
            (
                "the keys of one `SCAN`",
                "\(Limits.scanCountMax) entries, or \(Limits.scanBytesMax) bytes of keys, whatever `COUNT` says"
            ),
            (
                "unread replies of a client",
                "\(limits.outputBytesPause) bytes, then it is no longer read from; disconnected after "
                    + "\(limits.outputStallMilliseconds / 1000) s without progress (`--reply-timeout`)"
            ),
            (
                "unread messages of a subscriber",
                "\(limits.subscriberBytesMax) bytes (`--max-subscriber-output`), then it is disconnected; "
                    + "so it is with more than \(limits.subscriberBytesSoft) for "
                    + "\(limits.subscriberSoftMilliseconds / 1000) s"
            ),
            ("messages waiting for busy event loops", "\(limits.undeliveredBytesMax) bytes, then publishers wait"),
            ("writes waiting to be committed", "\(EngineOptions().pendingBytesMax) bytes, then commands wait"),
            (
                "committed writes waiting to be put into LevelDB",
                "\(2 * EngineOptions().checkpointBytes) bytes of journal, besides one long value, then commands wait; "
                    + "an error while checkpoints fail"
            ),
            (
                "commands between MULTI and EXEC",
                "\(limits.transactionBytesMax) bytes for each connection (`--max-transaction`), then an error, and EXEC "
                    + "refuses"
            ),
            ("watched keys", "\(limits.watchedKeysMax) for each connection (`--max-watched-keys`), then an error"),
            (
                "channels and patterns listened to",
                "\(limits.subscriptionBytesMax) bytes of names for each connection (`--max-subscriptions`), each name with "
                    + "\(Limits.subscriptionOverheadBytes) more, then an error; the same for prefixes of CLIENT TRACKING"
            ),
            (
                "keys read by clients that track",
                "\(limits.trackedKeysMax) of all connections (`--max-tracked-keys`, `tracking-table-max-keys`), then some "
                    + "are told of as if they had changed"
            ),
            (
                "deadlines watched for `expired`",
                "\(limits.watchedDeadlinesMax) (`--max-watched-deadlines`); the first one more is logged as a warning"
            ),
            (
                "open snapshots",
                "\(limits.snapshotsMax), each for at most \(limits.snapshotMilliseconds / 1000) s"
            ),
            ("remembered SCAN cursors", "\(limits.scanCursorsMax), the oldest are forgotten first"),
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
                "a request that is not complete",
                "what arrived of it, up to twice that while its memory grows; of at most "
                    + mebibytes(limits.requests.requestBytesMax),
                "fixed, as the \(mebibytes(limits.requests.bulkBytesMax)) of one word"
            ),
            ("requests sent ahead while replies are unread", mebibytes(limits.inputBytesPause), "fixed"),
            (
                "replies that it does not read", "\(output), and the one reply that goes beyond",
                "`--max-reply`, \(mebibytes(limits.replyBytesMax)), for that one; `--reply-timeout`, "
                    + "\(limits.outputStallMilliseconds / 1000) s, for how long"
            ),
            (
                "messages that it does not read", mebibytes(limits.subscriberBytesMax),
                "`--max-subscriber-output`, or `client-output-buffer-limit` (`pubsub`) of `CONFIG SET`"
            ),
            ("commands behind MULTI", mebibytes(limits.transactionBytesMax), "`--max-transaction`"),
            (
                "watched keys",
                "\(limits.watchedKeysMax) keys of at most \(Key.bytesMax >> 10) KiB, and what the table of them takes",
                "`--max-watched-keys`"
            ),
            (
                "channels, patterns, prefixes", "\(mebibytes(limits.subscriptionBytesMax)) each",
                "`--max-subscriptions`"
            ),
            (
                "keys it tracks",
                "its part of \(limits.trackedKeysMax) keys of at most \(Key.bytesMax >> 10) KiB, and what the table of them takes",
                "`--max-tracked-keys`, for all clients together"
            ),
            (
                "cursors of SCAN", "its part of \(limits.scanCursorsMax) keys", "fixed, for all clients together"
            ),
            (
                "values of 4 MiB and more that it has built (`SETRANGE`, `SETBIT`, `BITFIELD`, `APPEND`, `BITOP`)",
                "8.5 times the longest of them",
                "fixed, for all clients together: they are built one after the other"
            ),
            ("a connection at rest", "16 KiB", "`--max-clients`, \(limits.clientsMax)"),
        ]
        return "\n### What one client can take\n\n| what | at most | bounded by |\n|---|---|---|\n"
            + rows.map { "| \($0.0) | \($0.1) | \($0.2) |\n" }.joined() + largeValues
    }

    private static let largeValues = """

        A large value is in memory more than once for a while. Measured with 512 MiB (Linux, jemalloc, `--durability os`,
        beyond what the daemon took before): twice while `SET` runs (the request and the entry), three times for some seconds
        when it is then written into LevelDB (the entry, LevelDB's batch, its memtable; then the memtable, a block of a table, and
        what that becomes by compression), and not at all afterwards. `GET` of it takes it once more (the reply) while it is in memory, and
        twice (what LevelDB gives and the reply) afterwards. `SET`, `SETEX`, `PSETEX`, `SETNX` and `GETSET` of 4 MiB and more
        run one after the other, and each waits until the journal has room for it: other commands do not wait. Values longer than a 32nd of `--memory` are not kept in the memory
        tier. Commands that change such a value in place (`APPEND`, `SETRANGE`) have the former one beside it, and LevelDB merges
        both: four times for building, and beside that four times for merging two tables, which LevelDB may begin by itself. A
        value of 16 MiB and more is in a table, and merged with its former versions, before another is built. LevelDB's block cache keeps a block that is longer than itself, values as `GET` found them on
        the disk, up to sixteen of them, until it needs their places.

        """

    private static let databasesSection = """
        ## Databases and policies

        A connection begins in database `0`. `SELECT` takes `0` to `15`, as in Redis, and names: \(DatabaseName.rule).
        A database comes into being with its first write.

        A policy says how long entries stay fresh after they were stored: `highest` 10 s, `high` 1 min, `middle` 1 h, `low`
        24 h, `lowest` 7 days, `never`, or a number of seconds such as `90` or `0.5` (shown as `every:90`). An entry stored
        without a lifetime of its own is *governed*: it follows the policy its database has at the moment of the read.
        `EX`, `PX`, `EXAT`, `PXAT`, `POLICY` and the EXPIRE family give it an *own* deadline; `PERSIST` and `POLICY never`
        make it stay. An entry is expired from its deadline on, and is never handed out then.

        What a command does to the time an entry was stored (`stored-at` of `META`) and to its rule:

        | commands | stored-at | rule |
        |---|---|---|
        | `SET`, `MSET`, `SETNX`, `GETSET`, `SETEX`, `RESTORE`, `BITOP` and what else stores a new value | now | as the command says, else governed |
        | `APPEND`, `SETRANGE`, `INCR` and its kin, `SETBIT`, `BITFIELD`: a value changed in place | now, so that a governed entry gets its whole interval again; it stays where no bit is another than before | stays |
        | the EXPIRE family, `PERSIST`, `GETEX` | stays | as the command says |
        | `TOUCH`, `RENAME`, `COPY`, `MOVE` | stays | goes along; a governed entry that is moved to another database follows that one's policy |

        """

    private static let transactionsSection = """
        ## Transactions

        The commands between `MULTI` and `EXEC` run at one instant, with one time, isolated from all other connections on
        all event loops, in all databases that they select; what they write is one commit unit: after a crash all of it is
        there or nothing. If the commit fails, each reply of the transaction is that error. As in Redis an error of one
        command does not undo the others.

        A command on whole databases (`FLUSHDB`, `FLUSHALL`, `PURGE`, `KEYS`, `SCAN`, `DBSIZE`, `DATABASES`, `POLICY name`,
        `SNAPSHOT`, `INFO`, …) inside a transaction answers as in Redis, but is no part of that unit: what stands before it
        is one unit, what stands behind it another, and other connections may come in between. A transaction sees the
        present: with a snapshot open its reads are errors.

        The same holds for `PUBLISH` and the SUBSCRIBE family where the transaction has to read the disk.

        `WATCH` notices every write of the key, purges of an entry, a changed policy, and that a fresh entry expires; that
        memory lets go of an entry is nothing to it. What removes an entry that had expired before may be noticed too.

        """

    // MARK: Commands

    private static var groups: [CommandGroup] {
        var seen: [CommandGroup] = []
        for row in CommandMetadata.all where !seen.contains(row.group) { seen.append(row.group) }
        return seen
    }

    private static func section(_ group: CommandGroup) -> String {
        let name = group.rawValue
        let title = group == .larder ? "Larder's own" : name.prefix(1).uppercased() + name.dropFirst()
        // Subcommands have rows of their own, in place of their command's row.
        let specs = CommandMetadata.all.filter { $0.group == group }.flatMap { row in
            (row.runsByItself ? [row] : []) + row.subcommands
        }
        let rows = specs.map { spec in
            let name = spec.name.uppercased().replacing("|", with: " ")
            let usage = ([name] + (spec.syntax.isEmpty ? [] : [spec.syntax])).joined(separator: " ")
            return "| `\(escaped(usage))` | \(escaped(spec.summary)) | \(escaped(spec.reply)) | \(spec.complexity) |\n"
        }
        let examples = ProtocolExamples.groups[name].map {
            "\nTyped by hand, under `--policy never`:\n\n```\n\($0)\n```\n"
        }
        return "## Commands: \(title)\n\n| command | does | reply | cost |\n|---|---|---|---|\n" + rows.joined()
            + (examples ?? "")
    }

    private static func escaped(_ text: String) -> String { text.replacing("|", with: "\\|") }

    // MARK: Differences

    /// The deliberate differences to Redis, with their reasons.
    package static let differences: [(what: String, why: String)] = [
        (
            "Keyspace events: `evicted` (e) and `keymiss` (m) never come.",
            "What leaves memory is still stored, and reads are not written down."
        ),
        (
            "`SET` with a deadline that has passed tells `set`, `expire` and `expired` at once; in Redis `expired` comes when somebody asks for the key, or a little later.",
            "Nothing is stored that has expired already."
        ),
        (
            "`SWAPDB` tells `del` of each entry that leaves a database, and `set` of each that comes, and clients that track keys are told of both; Redis tells nothing.",
            "It writes the entries: who follows the events of a database follows what is in it."
        ),
        (
            "`BITFIELD` with `OVERFLOW FAIL` that makes a value longer, and writes nothing into it, tells `setbit`; Redis tells nothing.",
            "The value was changed."
        ),
        (
            "Where a command of a transaction is `CLIENT REPLY OFF` or `SKIP`, the reply of `EXEC` is left out as a whole; in Redis a part of it. `QUIT` closes the connection also after `CLIENT REPLY OFF`; Redis waits for the client to close it.",
            "A part of a reply breaks clients."
        ),
        (
            "What is published goes out at once. The events of writes that stand before it in a pipeline come when these are committed, and so may come after it.",
            "Events tell of what is committed."
        ),
        (
            "`CONFIG GET requirepass` is empty also where there is a password. `MONITOR` hides the words of every `AUTH`, in Redis not of one with too many.",
            "Passwords are not shown."
        ),
        (
            "A command that works on whole databases and waits for its turn is dropped when its client closes the connection, and with it what the client sent behind it; in Redis all of it is done. Not so where the client has only ended its own side, or writes with `CLIENT REPLY OFF`.",
            "What nobody waits for keeps nobody waiting."
        ),
        (
            "The values that the commands of one transaction build (`SETRANGE`, `SETBIT`, `BITFIELD`, `APPEND`, `BITOP`) may take as much together as the longest value.",
            "Memory is bounded."
        ),
        (
            "`expired_keys` of `INFO` counts an entry once: when a command finds it expired in memory, or reads it from the disk and memory keeps it; else when its space is reclaimed. One that memory drops between the two, for want of room, counts twice; one that is overwritten or removed unseen does not count.",
            "An entry that a read finds expired is left to the checkpoint or the sweep: a longer policy makes one that follows it fresh again."
        ),
        (
            "Entries are counted for `INFO keyspace` in the background: where that takes more than 20 ms, the numbers are up to a minute old, or fifty times as old as the count took. A database that is not counted yet is left out.",
            "`INFO` waits for nobody."
        ),
        (
            "A command has at most 1,048,576 words, as in Redis before 7.0.",
            "Memory is bounded."
        ),
        (
            "Inside a transaction a command on whole databases (`FLUSHALL`, `KEYS`, `SCAN`, `DBSIZE`, `INFO`, …) is no part of its commit unit; see Transactions.",
            "Such commands read or replace files, which is not done with the locks of entries held."
        ),
        (
            "Above `--max-watched-deadlines` entries with deadlines of their own are not told to have expired, neither then nor when their space is reclaimed; one warning is logged.",
            "What is watched takes memory."
        ),
        (
            "`KEYS` is an error where the keys take more than `--max-reply`; `SCAN` may return fewer keys than `COUNT` says where they are long.",
            "Memory is bounded."
        ),
        (
            "`maxmemory` is what `--memory` gives: the memory of the tier of hot entries, so that 0 means none of it, not any amount; nothing is lost when it is made smaller. `client-output-buffer-limit` shows what bounds clients here; only its class `pubsub` can be changed.",
            "Entries are on the disk."
        ),
        (
            "`expired` comes within a second of a deadline that an entry has of its own, once, for up to `--max-watched-deadlines` entries; for entries that follow a policy when their space is reclaimed; not for what expired while the daemon was down or nobody listened.",
            "Expired entries are not served, whether or not anybody was told."
        ),
        (
            "CLIENT TRACKING tells of entries that were read also when they end by themselves, follow a policy or not, and of everything when a policy changes. With BCAST, entries that follow a policy are told of when their space is reclaimed.",
            "Nobody keeps what is stale."
        ),
        (
            "Entries without an `EX` expire after their database's policy, 7 days unless said otherwise.",
            "Nothing is kept forever unless someone says so: `--policy never`, `POLICY never`, `PERSIST`."
        ),
        (
            "An entry is expired from its deadline on (`now >= deadline`); Redis serves it one millisecond longer.",
            "One boundary rule for every way in."
        ),
        (
            "`DBSIZE` reads all keys when LevelDB was written to since the last time, off the event loop; it is exact and counts expired entries that are not yet swept.",
            "A blind write does not look whether the key is there; Redis has every key in memory."
        ),
        (
            "`SCAN` cursors are numbers of a bounded table; an unknown one is an error. `KEYS` and `SCAN` list keys in the order of their bytes.",
            "They work on every connection and pin nothing; Redis takes any number for a cursor."
        ),
        (
            "`HELLO` and `INFO` say Redis version \(Version.redis); `larder_version` says ours.",
            "Clients choose their features by Redis' version."
        ),
        (
            "A bulk that is not followed by CR LF is a protocol error.",
            "Redis skips the two bytes unread, and takes what follows for a command."
        ),
        (
            "`WAIT` answers 0 at once; Redis waits for replicas until the time is over.",
            "There are no replicas, and no reply leaves before what it depends on is committed."
        ),
        (
            "`CLIENT LIST` ends with `lib-name`, `lib-ver` and `watch`; buffers are told roughly. `db` is the name of a database that has one.",
            "From newer Redis; each line stays a list of `field=value`."
        ),
        (
            "`SAVE` and `BGSAVE` write what is committed into the databases and sync it; `LASTSAVE` tells of them only.",
            "There is no other file to save to."
        ),
        (
            "`usec` in `INFO commandstats`, and percentiles in `INFO latencystats`, of `GET`, `SET`, `PING`, `MGET` and `EXISTS` are taken from one read of a connection in sixteen; these commands are in `SLOWLOG` from thresholds below 1 ms on, or where they were not in memory.",
            "To look at the clock twice for each would be a good part of what they cost."
        ),
        (
            "`CLIENT PAUSE` ends up to 0.1 s late.",
            "Event loops look ten times a second."
        ),
    ]

    private static var differencesSection: String {
        let shown = deliberateDifferences.map { difference in
            let replies = [difference.redis, difference.larder].map { firstLine($0) }
            return
                "| \(difference.subject) | `\(escaped((difference.before + [difference.example]).joined(separator: "; ")))` | "
                + "`\(replies[0])` | `\(replies[1])` | \(escaped(difference.reason)) |\n"
        }
        return "## Where we differ from Redis\n\n| what | why |\n|---|---|\n"
            + differences.map { "| \(escaped($0.what)) | \(escaped($0.why)) |\n" }.joined()
            + "\nAnd what one command shows; the replies are given by their beginnings, and a test sends each to both:\n\n"
            + "| what | example | Redis 7.0 | larderd | why |\n|---|---|---|---|---|\n" + shown.joined()
    }

    private static func firstLine(_ reply: String) -> String {
        let line = reply.split(separator: "\r\n", maxSplits: 1).first.map(String.init) ?? reply
        return line == reply ? line : line + " …"
    }
}
