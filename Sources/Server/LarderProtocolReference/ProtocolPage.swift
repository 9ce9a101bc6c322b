import LarderCommandCatalog
import LarderEngine
import LarderServer

/// docs/Protocol.md, generated from the command table, the limits and the list of differences. A test compares the file
/// with this, and rewrites it if `LARDER_UPDATE_DOCS` is set.
package enum ProtocolPage {
    package static var text: String {
        let prose = [
            introduction, examples, limitsSection, settingsSection, errorsSection, scriptsSection, databasesSection,
            transactionsSection,
            changesSection,
        ]
        return (prose + groups.map(section) + [absentTypesSection, differencesSection])
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

            larderd's options, and their names in `CONFIG GET`: the option's own, and Redis' where it has one. `CONFIG SET` changes those
            that are not marked, until the daemon ends. [Configuration](Configuration.md) has the file with the same names.

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
        | `ERR commit …: the write was not committed: …` | the disk refused the write, and it is rolled back; every command that waited with it gets this reply |
        | `ERR update …: an earlier write failed …` | LevelDB refused committed writes; the database takes no writes until it can be reopened, which larderd keeps trying |
        | `NOSCRIPT No matching script. Please use EVAL.` | `EVALSHA` of a script that is not kept: client libraries then send its text |
        | `NOTBUSY No scripts in execution right now.` | `SCRIPT KILL` while no script takes long |
        | `NOPROTO unsupported protocol version` | `HELLO` with a version other than 2 or 3 |
        | `WRONGPASS …` | `AUTH` or `HELLO … AUTH` with a wrong password (`--password-file`), or with a user other than `default` |

        """

    private static var scriptsSection: String {
        let limits = Limits()
        return """
            ## Scripts

            Scripts are of Lua 5.1, as in Redis 7.0, on strings: `redis.call`, `redis.pcall`, `redis.error_reply`,
            `redis.status_reply`, `redis.sha1hex`, `redis.log`, `redis.setresp`; the libraries `string`, `table`, `math`, `coroutine`,
            `cjson` and `bit`. There are no `struct`, `cmsgpack`, `os`, `io`, `require`, and no bytecode. Errors, conversions and flags
            (`#!lua flags=no-writes`) are those of Redis.

            - A script is isolated, and one commit unit, as `EXEC` is: others see all of it or nothing, and so does the next start. If it
              fails half-way, what it did before stays, as in Redis. Keys need not be declared; with declared keys it is faster.
            - Most scripts run on the event loop, with the locks of their keys. One that takes longer than a millisecond begins anew
              elsewhere, without any lock; others go on, on the same keys too. Its commands are then run once more with the locks held;
              if they get other answers, because somebody has changed an entry meanwhile, the script begins anew; one of up to 100 ms
              holds the locks after some vain attempts. So there is no `BUSY`,
              and `SCRIPT KILL` ends every script that takes long (`FUNCTION KILL` every function), whatever it has written: nothing of it
              is applied, and there is no `UNKILLABLE`. A script that calls `KEYS`, `SCAN`, `DBSIZE` or `RANDOMKEY` always takes this way.
            - The commands of a script that takes long are run once more with the locks held, and that takes as long as they take: one that
              appends to a value of megabytes again and again holds others up for that time. The clock stands still for a script, also
              for one that takes long. A script whose client is gone is ended.
            - In a transaction (`MULTI`) its scripts may run \(Limits.scriptInTransactionMilliseconds) ms together. With `SNAPSHOT OPEN` a
              script cannot read.
            - `math.random` gives other numbers in each run, until `math.randomseed`.
            - Scripts cannot change globals, nor the libraries, nor anything that another script sees.
            - `redis.log` writes to the daemon's log, 100 lines of 1024 bytes for each run at most; all scripts together 100, then one a second.

            A function is a script with a name, in a library that `FUNCTION LOAD` brings (Redis 7.0) and `FCALL` calls:

            ```text
            #!lua name=locks
            redis.register_function('unlock', function(keys, args)
              if redis.call('get', keys[1]) == args[1] then return redis.call('del', keys[1]) end
              return 0
            end)
            ```

            - Libraries are in the larder's ledger, durably, before `FUNCTION LOAD`, `DELETE`, `FLUSH` or `RESTORE` answers; they
              belong to no database, and `FLUSHALL` and purges leave them. `FUNCTION DUMP` and `RESTORE` exchange them with Redis.
            - For each call the library is run anew. What it keeps in local variables is therefore as it was after loading: it cannot count
              calls there, as it can in Redis. A library is to define functions, and no more.
            - The name of a function is found in any case, so a library cannot have two whose names differ in case only.
            - A file that is damaged is moved to `FUNCTIONS.damaged-` and the time, with an error in the log. A library of a sound file that
              cannot be loaded, as with a lower limit, has no functions, and stays in the file.

            | what | limit |
            |---|---|
            | time of a script | \(limits.scriptMilliseconds) ms (`--script-time-limit`); then it is ended, and nothing of it applied |
            | memory of a script | \(limits.scriptMemoryMax) bytes (`--max-script-memory`), then an error |
            | scripts kept for EVALSHA | the \(Limits.evaluatedScriptsMax) of `EVAL` that were used last, and those of `SCRIPT LOAD` by who may `SCRIPT FLUSH`; \(limits.scriptsBytesMax) bytes together (`--max-scripts`), then an error for `SCRIPT LOAD` |
            | libraries of functions | \(limits.scriptsBytesMax) bytes together (`--max-scripts`), then an error; 500 ms to register the functions of one |
            | words of a call, commands of a script that takes long | \(limits.transactionBytesMax) bytes (`--max-transaction`) |
            | a reply | `--max-script-memory` and `--max-reply`, 1000 levels |
            | what `cjson.encode` writes | a quarter of `--max-script-memory` |

            `INFO larder` counts `script_runs`, `script_repeats` (attempts that began anew), `scripts_without_locks`, `scripts_running`
            (without locks, now), `scripts_killed`, `scripts_timed_out`, `scripts_evicted`.

            """ + "\n"
    }

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
                "the entries of one `ENTRIES`",
                "\(Limits.entriesCountMax) entries, or \(Limits.scanBytesMax) bytes of keys and values, whatever `COUNT` and "
                    + "`BYTES` say, and the one entry that goes beyond"
            ),
            (
                "unread replies of a client",
                "\(limits.outputBytesPause) bytes, then its requests are no longer read; disconnected after "
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
                "leases",
                "\(limits.leasesMax) for each connection (`--max-leases`), \(LeaseContext.leasesMax) for all, then an error"
            ),
            ("callers who wait in FETCH", "\(LeaseContext.waitersMax), then an error"),
            (
                "channels and patterns listened to",
                "\(limits.subscriptionBytesMax) bytes of names for each connection (`--max-subscriptions`), each name with "
                    + "\(Limits.subscriptionOverheadBytes) more, then an error; the same for prefixes of CLIENT TRACKING"
            ),
            (
                "keys read by clients that track",
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
                "the bytes that arrived, up to twice that while its memory grows; at most "
                    + mebibytes(limits.requests.requestBytesMax),
                "fixed, as the \(mebibytes(limits.requests.bulkBytesMax)) of one word"
            ),
            ("requests sent ahead while replies are unread", mebibytes(limits.inputBytesPause), "fixed"),
            (
                "unread replies", "\(output), and the one reply that goes beyond",
                "`--max-reply`, \(mebibytes(limits.replyBytesMax)), for that one; `--reply-timeout`, "
                    + "\(limits.outputStallMilliseconds / 1000) s, for how long"
            ),
            (
                "unread messages", mebibytes(limits.subscriberBytesMax),
                "`--max-subscriber-output`, or `client-output-buffer-limit` (`pubsub`) of `CONFIG SET`"
            ),
            ("commands after MULTI", mebibytes(limits.transactionBytesMax), "`--max-transaction`"),
            (
                "watched keys",
                "\(limits.watchedKeysMax) keys of at most \(Key.bytesMax >> 10) KiB, and the memory of their table",
                "`--max-watched-keys`"
            ),
            (
                "channels, patterns, prefixes", "\(mebibytes(limits.subscriptionBytesMax)) each",
                "`--max-subscriptions`"
            ),
            (
                "keys it tracks",
                "its part of \(limits.trackedKeysMax) keys of at most \(Key.bytesMax >> 10) KiB, and the memory of their table",
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
        return "\n### What one client can use\n\n| what | at most | limited by |\n|---|---|---|\n"
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
        value of 16 MiB and more is in a table, and merged with its former versions, before another is built.

        """

    private static let databasesSection = """
        ## Databases and policies

        A connection begins in database `0`. `SELECT` takes `0` to `15`, as in Redis, and names: \(DatabaseName.rule).
        A database is created by its first write.

        A policy says how long entries stay fresh after they were stored: `highest` 10 s, `high` 1 min, `middle` 1 h, `low`
        24 h, `lowest` 7 days, `never`, or a number of seconds such as `90` or `0.5` (shown as `every:90`). An entry stored
        without a lifetime of its own is *governed*: it follows the policy its database has at the moment of the read.
        `EX`, `PX`, `EXAT`, `PXAT`, `POLICY` and the EXPIRE family give it an *own* deadline; `PERSIST` and `POLICY never`
        make it stay. An entry is expired from its deadline on, and is never handed out then.

        What a command does to the time an entry was stored (`stored-at` of `META`) and to its rule:

        | commands | stored-at | rule |
        |---|---|---|
        | `SET`, `MSET`, `SETNX`, `GETSET`, `SETEX`, `RESTORE`, `BITOP` and what else stores a new value | now | as the command says, else governed |
        | `APPEND`, `SETRANGE`, `INCR` and its kin, `SETBIT`, `BITFIELD`: a value changed in place | now, so that a governed entry gets its whole interval again; it stays where `SETBIT` changes no bit | stays |
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
        `SNAPSHOT`, `INFO`, …) inside a transaction answers as in Redis, but is not part of that unit: the commands before it
        are one unit, those after it another, and other connections may come in between. A transaction sees the
        present: with a snapshot open its reads are errors.

        The same holds for `PUBLISH` and the SUBSCRIBE family where the transaction has to read the disk.

        `WATCH` notices every write of the key, purges of an entry, a changed policy, and the expiry of a fresh entry;
        eviction of an entry from memory does not count. The removal of an entry that had expired before may count.

        """

    private static let changesSection = """
        ## Changes of entries

        larderd publishes what happens to entries to channels, which SUBSCRIBE and PSUBSCRIBE take, in RESP2 and RESP3. Unlike
        keyspace notifications this needs no setting, and tells kinds of changes instead of names of commands. While nobody
        listens to such a channel, it costs nothing. DB is the name of the database.

        | channel | message | when |
        |---|---|---|
        | `__change@DB__:KEY` | `stored` | an entry was stored, or given another lifetime |
        | | `removed` | an entry was removed, by its key or its prefix |
        | | `expired` | its deadline has passed, and nothing was stored since |
        | `__change@DB__` | `purged` | the database was emptied |
        | | `purged TAG` | all entries with the tag are gone, or stale; one message for each tag |
        | | `fellbehind` | everything may have changed, and nobody knows what has |

        `SUBSCRIBE __change@0__:k __change@0__` is for one key, `PSUBSCRIBE __change@0__:user:*` and
        `SUBSCRIBE __change@0__` for a prefix. Patterns that do not begin with `__change@`, such as `*`, do not match these
        channels. Clients may know other messages as "everything may have changed".

        A change is published when it is committed, those of one key in the order of their commits, and never if the commit
        failed. Who reads the key then gets that state or a newer one. An expiry is published within about a second, if the
        entry was stored while anybody listened, or when somebody subscribed to the channel of its key, and if there are
        not more than 65,536 such entries; otherwise when the entry's space is reclaimed. A subscriber that does not read its
        messages is disconnected: see the limits. It has then missed some.

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
            (row.runsByItself ? [row] : []) + row.subcommands
        }
        let rows = specs.map { spec in
            "| `\(escaped(usage(of: spec)))` | \(escaped(spec.summary)) | \(escaped(spec.reply)) | \(spec.complexity) |\n"
        }
        let examples = examples(of: name)
        return "## Commands: \(title)\n\n| command | does | reply | cost |\n|---|---|---|---|\n" + rows.joined()
            + examples
    }

    private static func usage(of row: CommandMetadata) -> String {
        let name = row.name.uppercased().replacing("|", with: " ")
        return ([name] + (row.syntax.isEmpty ? [] : [row.syntax])).joined(separator: " ")
    }

    private static func examples(of group: String) -> String {
        ProtocolExamples.groups[group].map {
            "\nTyped by hand, under `--policy never`:\n\n```\n\($0)\n```\n"
        } ?? ""
    }

    /// The commands for types of values that Larder does not store.
    private static var absentTypesSection: String {
        var replies: [(text: String, names: [String])] = []
        for row in CommandMetadata.all where row.absent != nil {
            let name = "`\(row.name.uppercased())`"
            if let index = replies.firstIndex(where: { $0.text == row.reply }) {
                replies[index].names.append(name)
            } else {
                replies.append((row.reply, [name]))
            }
        }
        let rows = replies.map { "| \(escaped($0.text)) | \($0.names.joined(separator: " ")) |\n" }
        return """
            ## Commands: hashes, sets, sorted sets, lists, streams, places

            Larder stores strings only. A key either has a string or does not exist, so commands that read or remove parts of other
            values have one reply: the reply of Redis for a key that does not exist, or `WRONGTYPE` for a string. Commands that store such values
            are unknown, and so are those that wait for one (`BLPOP`). Of the arguments behind the keys only integers, cursors and counts are
            checked. In a database with an origin, the origin answers all of them.

            | reply | commands |
            |---|---|

            """ + rows.joined() + examples(of: ProtocolExamples.otherTypes)
    }

    private static func escaped(_ text: String) -> String { text.replacing("|", with: "\\|") }

    // MARK: Differences

    /// The deliberate differences to Redis, with their reasons.
    package static let differences: [(what: String, why: String)] = [
        (
            "Keyspace events: `evicted` (e) and `keymiss` (m) never come.",
            "An entry evicted from memory is still stored, and reads are not recorded."
        ),
        (
            "`SET` with a past deadline sends `set`, `expire` and `expired` at once; in Redis `expired` comes when the key is read, or a little later.",
            "An expired entry is not stored."
        ),
        (
            "`SWAPDB` sends `del` for each entry that leaves a database and `set` for each that arrives, also to clients that track keys; Redis sends nothing.",
            "It writes the entries, and events describe every change of a database."
        ),
        (
            "`BITFIELD` with `OVERFLOW FAIL` that extends a value without writing into it sends `setbit`; Redis sends nothing.",
            "The value was changed."
        ),
        (
            "If a transaction contains `CLIENT REPLY OFF` or `SKIP`, the whole reply of `EXEC` is left out; in Redis a part of it. `QUIT` closes the connection also after `CLIENT REPLY OFF`; Redis waits for the client to close it.",
            "A part of a reply breaks clients."
        ),
        (
            "Published messages are sent at once. Events of earlier writes in a pipeline are sent when the writes are committed, so they may come later.",
            "Events describe committed writes."
        ),
        (
            "`CONFIG GET requirepass` is empty even if there is a password. `MONITOR` hides the words of every `AUTH`; Redis shows those of one with too many.",
            "Passwords are not shown."
        ),
        (
            "A waiting command on whole databases is dropped with all later ones if its client closes the connection; Redis executes them. It is executed if the client has only ended its own side, or writes with `CLIENT REPLY OFF`.",
            "A command without a client must not delay others."
        ),
        (
            "All values that one transaction builds (`SETRANGE`, `SETBIT`, `BITFIELD`, `APPEND`, `BITOP`) may together be as large as the longest value.",
            "Memory is limited."
        ),
        (
            "`expired_keys` of `INFO` counts an entry once: when a command finds it expired in memory or loads it from the disk into memory, else when its space is reclaimed. An entry evicted between the two counts twice; one that is overwritten or removed before does not count.",
            "A read leaves an expired entry to the checkpoint or the sweep: under a longer policy it may be fresh again."
        ),
        (
            "Entries are counted for `INFO keyspace` in the background. If that takes more than 20 ms, the numbers are up to a minute old, or as old as fifty times the duration of the count. A database that is not counted yet is left out, and `uncounted_databases` says how many are.",
            "`INFO` does not wait."
        ),
        (
            "A command has at most 1,048,576 words, as in Redis before 7.0.",
            "Memory is limited."
        ),
        (
            "Inside a transaction a command on whole databases (`FLUSHALL`, `KEYS`, `SCAN`, `DBSIZE`, `INFO`, …) is no part of its commit unit; see Transactions.",
            "Such commands read or replace files, which must not happen with the locks of entries held."
        ),
        (
            "Beyond `--max-watched-deadlines`, entries with their own deadlines send no `expired`, neither then nor when their space is reclaimed; one warning is logged.",
            "Watched deadlines take memory."
        ),
        (
            "`KEYS` is an error if the keys take more than `--max-reply`; `SCAN` may return fewer long keys than `COUNT`.",
            "Memory is limited."
        ),
        (
            "`maxmemory` is the value of `--memory`: the memory for hot entries, so 0 means none, not unlimited; no entry is lost when it is lowered. `client-output-buffer-limit` shows larderd's limits; only its class `pubsub` can be changed.",
            "Entries are on the disk."
        ),
        (
            "For an entry's own deadline, `expired` comes once within a second, for up to `--max-watched-deadlines` entries. For entries that follow a policy it comes when their space is reclaimed. It does not come for entries that expired while the daemon was down or nobody listened.",
            "Expired entries are never served, with or without an event."
        ),
        (
            "CLIENT TRACKING also reports entries that were read when they expire, and all of them when a policy changes or an origin is lost: to who has had the database selected, and with BCAST to all who did not say DATABASE. With BCAST, entries that follow a policy are reported when their space is reclaimed.",
            "Clients keep no stale entries."
        ),
        (
            "Entries without an `EX` expire by their database's policy, by default after 7 days.",
            "Entries stay forever only on request: `--policy never`, `POLICY never`, `PERSIST`."
        ),
        (
            "An entry is expired from its deadline on (`now >= deadline`); Redis serves it one millisecond longer.",
            "One rule for all interfaces."
        ),
        (
            "`DBSIZE` reads all keys when LevelDB was written to since the last time, off the event loop; it is exact.",
            "A blind write does not check whether the key exists; Redis has every key in memory."
        ),
        (
            "`SCAN` cursors are numbers of a bounded table; an unknown one is an error. `KEYS` and `SCAN` list keys in the order of their bytes.",
            "They work on every connection and pin nothing; Redis accepts any number as a cursor."
        ),
        (
            "`HELLO` and `INFO` give Redis version \(Version.redis); `larder_version` is larderd's.",
            "Clients choose their features by Redis' version."
        ),
        (
            "A bulk that is not followed by CR LF is a protocol error.",
            "Redis skips the two bytes unread, and reads the next bytes as a command."
        ),
        (
            "`WAIT` returns 0 at once; Redis waits for replicas until the timeout.",
            "There are no replicas, and every reply waits for the commits it depends on."
        ),
        (
            "`CLIENT LIST` ends with `lib-name`, `lib-ver` and `watch`; buffer sizes are approximate. `db` is the database's name if it has one.",
            "From newer Redis; each line stays a list of `field=value`."
        ),
        (
            "`SAVE` and `BGSAVE` write committed entries into the databases and sync them; `LASTSAVE` covers only these commands.",
            "There is no other file to save to."
        ),
        (
            "`usec` in `INFO commandstats`, and percentiles in `INFO latencystats`, of `GET`, `SET`, `PING`, `MGET` and `EXISTS` are taken from one read of a connection in sixteen; these commands are in `SLOWLOG` from thresholds below 1 ms on, or where they were not in memory.",
            "Reading the clock twice for each would be a large part of their cost."
        ),
        (
            "`CLIENT PAUSE` ends up to 0.1 s late.",
            "Event loops check ten times a second."
        ),
        (
            "During `CLIENT PAUSE`, as in Redis, entries that expire are not removed, and their `expired` events come after it. `DBSIZE` leaves them out and a read of one counts in `expired_keys`; Redis does neither. Clients that track what they read are notified at the deadline.",
            "An expired entry is never served, whatever is paused."
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
