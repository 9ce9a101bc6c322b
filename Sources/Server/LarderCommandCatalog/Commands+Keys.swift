/// Commands that remove, list, move and inspect keys.
extension CommandMetadata {
    static let keyspace: [CommandMetadata] = [
        .del, .unlink, .exists, .type, .keys, .scan, .dbsize, .touch, .rename, .renamenx, .copy, .move, .swapdb,
        .randomkey, .dump, .restore, .object, .memory,
    ]

    package static let del = CommandMetadata(
        "del", arity: -2, [.write], keys: .all, group: .generic, since: "1.0.0", complexity: "O(N)",
        syntax: "key [key ...]", summary: "Removes keys.", reply: "integer: number of fresh entries",
        access: ["RM delete"], tips: [.requestMultiShard, .responseSum], tag: .delete)

    package static let unlink = CommandMetadata(
        "unlink", arity: -2, [.write, .fast], keys: .all, group: .generic, since: "4.0.0", complexity: "O(N)",
        syntax: "key [key ...]", summary: "Same as DEL: space is always reclaimed in the background.",
        reply: "integer: number of fresh entries", access: ["RM delete"], tips: [.requestMultiShard, .responseSum],
        tag: .delete)

    package static let exists = CommandMetadata(
        "exists", arity: -2, [.readonly, .fast], keys: .all, group: .generic, since: "1.0.0", complexity: "O(N)",
        syntax: "key [key ...]", summary: "Counts the keys that have a fresh entry.",
        reply: "integer; a key given twice counts twice", access: ["RO"], tips: [.requestMultiShard, .responseSum])

    package static let type = CommandMetadata(
        "type", arity: 2, [.readonly, .fast], keys: .one, group: .generic, since: "1.0.0", syntax: "key",
        summary: "Returns the type of a key's value; there are only strings.",
        reply: "`string`, or `none` when there is no fresh entry", access: ["RO"])

    package static let keys = CommandMetadata(
        "keys", arity: 2, [.readonly, .dangerous], group: .generic, since: "1.0.0",
        complexity: "O(N) with N the entries under the pattern's fixed prefix", syntax: "pattern",
        summary: "Lists the keys of fresh entries that match a pattern, in byte order.",
        reply: "array of bulk", tips: [.requestAllShards, .outputOrder])

    package static let scan = CommandMetadata(
        "scan", arity: -2, [.readonly, .brief], group: .generic, since: "2.8.0",
        complexity: "O(COUNT) for each call, and O(M) with M the entries that LevelDB does not have yet",
        syntax: "cursor [MATCH pattern] [COUNT count] [TYPE type]",
        summary: "Lists keys in steps: start with cursor 0, and repeat with the returned cursor until it is 0.",
        reply: "array of the next cursor and an array of keys; an unknown cursor is an error",
        tips: [.output, .requestSpecial])

    package static let dbsize = CommandMetadata(
        "dbsize", arity: 1, [.readonly, .fast], group: .server, since: "1.0.0",
        complexity: "O(N) for the first call after a checkpoint, a sweep, or a change of the policy; otherwise O(M) "
            + "with M the entries that LevelDB does not have yet",
        summary: "Counts the fresh entries.", reply: "integer",
        category: "keyspace", tips: [.requestAllShards, .responseSum])

    package static let touch = CommandMetadata(
        "touch", arity: -2, [.readonly, .fast], keys: .all, group: .generic, since: "3.2.1", complexity: "O(N)",
        syntax: "key [key ...]",
        summary: "Counts the keys that have a fresh entry; the time they were stored does not change.",
        reply: "integer; a key given twice counts twice", access: ["RO"], tips: [.requestMultiShard, .responseSum])

    package static let rename = CommandMetadata(
        "rename", arity: 3, [.write], keys: .two, group: .generic, since: "1.0.0", syntax: "key newkey",
        summary: "Renames an entry's key; it keeps its deadline rule and the time it was stored. An existing "
            + "entry with the new key is removed.", reply: "OK; an error when there is no fresh entry",
        access: ["RW access delete", "OW update"], tag: .rename)

    package static let renamenx = CommandMetadata(
        "renamenx", arity: 3, [.write, .fast], keys: .two, group: .generic, since: "1.0.0", syntax: "key newkey",
        summary: "Like RENAME, if the new key has no fresh entry.",
        reply: "1; 0 when the new key has a fresh entry; an error when the old key has none",
        access: ["RW access delete", "OW insert"], tag: .rename)

    package static let copy = CommandMetadata(
        "copy", arity: -3, [.write, .denyOOM], keys: .two, group: .generic, since: "6.2.0",
        complexity: "O(N) with N the value's length", syntax: "source destination [DB name] [REPLACE]",
        summary: "Copies an entry to another key or database; the copy keeps the deadline rule and the time it "
            + "was stored.",
        reply: "1; 0 when there is no fresh entry, or the other key has one and REPLACE is missing",
        access: ["RO access", "OW update"], tag: .copy, database: .targetOption(key: 2))

    package static let move = CommandMetadata(
        "move", arity: 3, [.write, .fast], keys: .one, group: .generic, since: "1.0.0", syntax: "key name",
        summary: "Moves an entry to another database; it keeps its deadline rule and the time it was stored. Entries "
            + "without their own deadline then follow that database's policy.",
        reply: "1; 0 when there is no fresh entry, or the other database has one", tag: .move,
        database: .target(name: 2, key: 1))

    package static let swapdb = CommandMetadata(
        "swapdb", arity: 3, [.write, .fast, .wholeDatabase, .dangerous], group: .server, since: "4.0.0",
        complexity: "O(N) with N the entries of both databases", syntax: "name name",
        summary:
            "Exchanges the fresh entries of two databases, as one commit unit. Their policies are kept; stale entries are "
            + "removed, and leases released. Limited to "
            + "\(exchangedEntriesMax) entries and \(exchangedBytesMax >> 20) MiB of values in total.",
        reply: "OK; an error above the limit", category: "keyspace", database: .both)

    package static let randomkey = CommandMetadata(
        "randomkey", arity: 1, [.readonly], group: .generic, since: "1.0.0",
        complexity: "O(M) with M the entries that LevelDB does not have yet",
        summary: "Returns the key of a random fresh entry; not all have the same probability.",
        reply: "bulk; null when there is none", tips: [.requestAllShards, .output])

    package static let dump = CommandMetadata(
        "dump", arity: 2, [.readonly], keys: .one, group: .generic, since: "2.6.0",
        complexity: "O(N) with N the value's length", syntax: "key",
        summary: "Returns a value in the format that RESTORE reads, here and in Redis.",
        reply: "bulk; null when there is no fresh entry", tips: [.output])

    package static let restore = CommandMetadata(
        "restore", arity: -4, [.write, .denyOOM, .creates, .dangerous], keys: .one, group: .generic, since: "2.6.0",
        complexity: "O(N) with N the value's length",
        syntax: "key ttl serialized-value [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]",
        summary: "Stores a value from DUMP, of Larder or Redis up to 7.0. The ttl is in milliseconds; with 0 the "
            + "entry follows the database's policy.",
        reply: "OK; an error when the key has a fresh entry and REPLACE is missing", access: ["OW update"],
        tag: .restore)

    package static let object = CommandMetadata(
        "object", arity: -2, [.readonly], keys: .second, group: .generic, since: "2.2.3",
        syntax: "ENCODING key | FREQ key | IDLETIME key | REFCOUNT key | HELP",
        summary: "Describes an entry like Redis: the encoding that Redis would choose, and the seconds since the value "
            + "was stored. Reads are not recorded.",
        reply: "ENCODING: bulk; IDLETIME, REFCOUNT: integer; FREQ: an error as in Redis without LFU; null when "
            + "there is no fresh entry; HELP: array",
        subcommands: [
            .objectEncoding, .objectFreq, .objectIdletime, .objectRefcount,
            .help("object", group: .generic, since: "6.2.0"),
        ])

    private static let ofObject = CommandFamily(
        "object|", flags: [.readonly], keys: .second, group: .generic, since: "2.2.3", syntax: "key", access: ["RO"],
        tips: [.output])
    package static let objectEncoding = ofObject.row(
        "encoding", 3, "Returns the encoding that Redis would choose: `int`, `embstr` or `raw`.", reply: "bulk or null")
    package static let objectFreq = ofObject.row(
        "freq", 3, since: "4.0.0", "Fails for every entry: the frequency of use is not recorded.",
        reply: "error or null")
    package static let objectIdletime = ofObject.row(
        "idletime", 3, "Returns the seconds since the value was stored.", reply: "integer or null")
    package static let objectRefcount = ofObject.row(
        "refcount", 3, "Returns the count that Redis would report: 2147483647 for small integers, else 1.",
        reply: "integer or null")

    package static let memory = CommandMetadata(
        "memory", arity: -2, [.readonly], keys: .second, group: .server, since: "4.0.0",
        syntax: "USAGE key [SAMPLES count] | STATS | DOCTOR | PURGE | MALLOC-STATS | HELP",
        summary: "Returns the size of an entry in memory, and describes the daemon's "
            + "memory; PURGE returns free memory to the system.",
        reply: "USAGE: integer, null when there is no fresh entry; STATS: map; PURGE: OK; the others: text",
        subcommands: [
            .memoryUsage, .memoryStats, .memoryDoctor, .memoryPurge, .memoryMallocStats,
            .help("memory", group: .server, since: "4.0.0"),
        ])

    private static let ofMemory = CommandFamily(
        "memory|", group: .server, since: "4.0.0", tips: [.output, .requestAllShards, .responseSpecial])
    package static let memoryUsage = ofMemory.row(
        "usage", -3, flags: .readonly, syntax: "key [SAMPLES count]",
        "Returns the size of the entry in memory, in bytes.", reply: "integer or null", keys: .second, access: ["RO"],
        tips: [])
    package static let memoryStats = ofMemory.row(
        "stats", 2, "Returns the memory use of all entries, and its limit.", reply: "map")
    package static let memoryDoctor = ofMemory.row(
        "doctor", 2, "Returns the memory use and its limit as a sentence.", reply: "text")
    package static let memoryPurge = ofMemory.row(
        "purge", 2, "Returns free memory to the system.", reply: "OK", tips: [.requestAllShards, .responseAllSucceeded])
    package static let memoryMallocStats = ofMemory.row("malloc-stats", 2, "Not supported.", reply: "text")
}

/// Commands about the lifetimes of entries.
extension CommandMetadata {
    static let expiry: [CommandMetadata] = [
        .expire, .pexpire, .expireat, .pexpireat, .ttl, .pttl, .expiretime, .pexpiretime, .persist,
    ]

    private static let deadlines = CommandFamily(
        "", flags: [.write, .fast], keys: .one, group: .generic,
        reply: "1; 0 when there is no fresh entry or the condition is not met", access: ["RW update"], tag: .expire)
    package static let expire = deadlines.row(
        "expire", -3, since: "1.0.0", syntax: "key seconds [NX | XX | GT | LT]",
        "Gives an entry its own deadline, a number of seconds from now.")
    package static let pexpire = deadlines.row(
        "pexpire", -3, since: "2.6.0", syntax: "key milliseconds [NX | XX | GT | LT]",
        "Gives an entry its own deadline, a number of milliseconds from now.")
    package static let expireat = deadlines.row(
        "expireat", -3, since: "1.2.0", syntax: "key unix-time-seconds [NX | XX | GT | LT]",
        "Gives an entry its own deadline, in seconds since 1970.")
    package static let pexpireat = deadlines.row(
        "pexpireat", -3, since: "2.6.0", syntax: "key unix-time-milliseconds [NX | XX | GT | LT]",
        "Gives an entry its own deadline, in milliseconds since 1970.")

    private static let lifetimes = CommandFamily(
        "", flags: [.readonly, .fast], keys: .one, group: .generic, syntax: "key",
        reply: "integer; -1 when it does not expire, -2 when there is no fresh entry")
    package static let ttl = lifetimes.row(
        "ttl", 2, since: "1.0.0", "Returns how long an entry stays fresh, in seconds.", tips: [.output])
    package static let pttl = lifetimes.row(
        "pttl", 2, since: "2.6.0", "Returns how long an entry stays fresh, in milliseconds.", tips: [.output])
    package static let expiretime = lifetimes.row(
        "expiretime", 2, since: "7.0.0", "Returns an entry's deadline in seconds since 1970.")
    package static let pexpiretime = lifetimes.row(
        "pexpiretime", 2, since: "7.0.0", "Returns an entry's deadline in milliseconds since 1970.")

    package static let persist = CommandMetadata(
        "persist", arity: 2, [.write, .fast], keys: .one, group: .generic, since: "2.2.0", syntax: "key",
        summary: "Makes an entry never expire, regardless of the database's policy.",
        reply: "1; 0 when there is no fresh entry or it has no deadline", access: ["RW update"], tag: .persist)
}
