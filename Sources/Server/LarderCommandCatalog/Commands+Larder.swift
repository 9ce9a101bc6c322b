import LarderVocabulary

/// Commands that Redis does not have.
extension CommandMetadata {
    static let larder: [CommandMetadata] = [
        .meta, .policy, .limit, .fetch, .release, .databases, .purge, .tags, .snapshot, .entries, .place, .changes,
        .unplace, .backup, .check, .origin,
    ]

    package static let meta = CommandMetadata(
        "meta", arity: 2, [.readonly, .fast], keys: .one, group: .larder, since: "0.1.0", syntax: "key",
        summary: "Returns when an entry was stored and when it expires, and the rule and the policy that determine "
            + "this.",
        reply: "map of stored-at, age, deadline, ttl (milliseconds, -1 never), rule, policy, grace, size, codec, "
            + "state (fresh; stale: within its grace, or unverified because its origin is down); null when there is no "
            + "fresh or stale entry",
        access: ["RO"])

    package static let policy = CommandMetadata(
        "policy", arity: -1, [.readonly, .writesWithArguments], group: .larder, since: "0.1.0",
        syntax: "[name|seconds [GRACE seconds] [JITTER percent]]",
        summary: "Returns or sets the current database's update policy: \(UpdatePolicy.syntax). GRACE keeps expired "
            + "entries for FETCH; JITTER shortens lifetimes at random. Omitted options are unchanged.",
        reply: "map of policy, interval (milliseconds, -1 never), grace (milliseconds), jitter (percent); OK when it "
            + "was set")

    package static let limit = CommandMetadata(
        "limit", arity: -1, [.admin, .ofSelectedDatabase], group: .larder, since: "0.1.0", syntax: "[bytes|NONE]",
        summary:
            "Returns or sets the disk budget of the current database in bytes; with 0 or NONE only --max-disk applies. "
            + "A full budget evicts the least valuable entries.",
        reply: "map of limit (0: none), bytes (on disk), evicted (entries, since the start); OK if it was set")

    package static let origin = CommandMetadata(
        "origin", arity: -1, [.admin, .ofSelectedDatabase, .noMulti, .noScript], group: .larder, since: "0.1.0",
        syntax:
            "[url [THROUGH|AROUND|BEHIND] [STALE] [BCAST [PREFIX prefix [PREFIX prefix ...]] | LIFETIMES] "
            + "[REPLICAS milliseconds] [USER name] [PASSWORDFILE path] [DISCARD] | NONE [DISCARD] | PATH [larder ...]]",
        summary:
            "Returns or sets the current database's origin. Writes go THROUGH (stored here too), AROUND (removed "
            + "here) or BEHIND (stored here, delivered later). With STALE, reads return stale entries while the "
            + "origin is down. The origin reports changes of the keys that were read; with BCAST, it broadcasts the "
            + "changes of all keys, or of the keys with a PREFIX; with LIFETIMES, it reports no changes, and entries "
            + "are fresh until they expire. With REPLICAS, slow reads also ask a replica. DISCARD drops queued "
            + "writes. PATH lists the upstream chain.",
        reply:
            "map of url (empty without an origin; no other field follows), writing, stale, hears (the invalidation "
            + "mode: tracking, broadcast or lifetimes), bound (the limit on staleness in milliseconds; -1: none), "
            + "replicas (milliseconds until a replica is asked; 0: never), prefixes, state, known (the number of "
            + "tracked keys), outbox (the number of keys with queued writes), and counters; OK if it was set; array of "
            + "larder/database with PATH",
        secrets: .from(1))

    package static let fetch = CommandMetadata(
        "fetch", arity: -2, [.readonly, .noMulti, .noScript], keys: .one, group: .larder, since: "0.1.0",
        syntax: "key [MAXAGE milliseconds] [WAIT milliseconds] [LEASE milliseconds] [IFNOT version]",
        summary: "Returns the fresh value of a key, or gives one client the lease to fetch it from its origin. "
            + "Meanwhile, other clients get a stale value, or wait.",
        reply: "array of state (fresh, same, stale, lead, wait, absent, failed), value or null, token or null, "
            + "version or null, age (milliseconds, -1 without an entry), ttl (milliseconds: the remaining lifetime of "
            + "the entry, -1 never; 0 for lead without an entry; for wait, absent and failed the time left of the "
            + "lease, of the absence or of the back-off)",
        access: ["RW access"], effect: .none)

    package static let release = CommandMetadata(
        "release", arity: -3, [.write, .denyOOM, .noScript], keys: .one, group: .larder, since: "0.1.0",
        syntax: "key token [UNCHANGED | ABSENT milliseconds | FAILED milliseconds]",
        summary:
            "Releases the lease of a key. UNCHANGED: the stored value is still valid, and gets a new lifetime. ABSENT: "
            + "the origin has no value; this is remembered for that time, or until the key is written or any tag is "
            + "purged. FAILED: no client gets the lease for that time.",
        reply: "OK; null if the token is no longer valid", access: ["RW update"], tag: .set)

    package static let databases = CommandMetadata(
        "databases", arity: 1, [.admin, .showsReadable], group: .larder, since: "0.1.0",
        complexity: "O(N) with N the entries that were written since the last count, in all databases",
        summary: "Lists the databases that have files.",
        reply:
            "array of maps of name, policy, interval, grace, jitter, entries (fresh), stale, ends-minute, ends-hour, "
            + "ends-day and ends-never (the fresh entries that expire within that time; all of these -1 if they cannot "
            + "be counted), bytes, limit (0: none), state (open, closed, loading, failed or damaged), damage"
    )

    package static let purge = CommandMetadata(
        "purge", arity: -1, [.write, .wholeDatabase], group: .larder, since: "0.1.0",
        complexity: "O(1) to empty the database, and O(N) to count what was removed; O(N) with EXPIRED or PREFIX; "
            + "O(1) with TAG, regardless of the number of entries with the tags",
        syntax: "[EXPIRED | PREFIX prefix | TAG tag [tag ...] [SOFT] "
            + "| UPTO version [PREFIX prefix] [TAG tag [tag ...]]]",
        summary:
            "Empties the current database at once. EXPIRED removes only expired entries, PREFIX the entries whose keys "
            + "have a prefix (in commit units of at most 512), TAG the entries with one of the tags. SOFT as the last "
            + "word makes them stale instead, so put a tag named SOFT first. UPTO applies the purge of another larder: "
            + "it removes the entries that were not changed after that version.",
        reply: "map of entries, bytes, milliseconds; OK with TAG; integer with UPTO: the removed entries")

    package static let tags = CommandMetadata(
        "tags", arity: 2, [.readonly], keys: .one, group: .larder, since: "0.1.0", syntax: "key",
        summary: "Returns the tags of an entry.", reply: "array; null when there is no fresh entry", access: ["RO"])

    package static let snapshot = CommandMetadata(
        "snapshot", arity: -2, [], group: .larder, since: "0.1.0", complexity: "that of the subcommand",
        syntax: "OPEN | CLOSE | HELP", summary: "Opens and closes a snapshot of the current database.", reply: "OK",
        subcommands: [.snapshotOpen, .snapshotClose, .help("snapshot", group: .larder, since: "0.2.0")])

    package static let snapshotOpen = CommandMetadata(
        "snapshot|open", arity: 2, [.readonly, .noScript], group: .larder, since: "0.1.0",
        complexity: "O(M) with M the entries that LevelDB does not have yet",
        summary: "Until CLOSE, this connection reads the current database as it was at OPEN. Only later changes of its "
            + "policy and purges of tags affect these reads.", reply: "OK", effect: .changesState)

    package static let snapshotClose = CommandMetadata(
        "snapshot|close", arity: 2, [.readonly, .noScript], group: .larder, since: "0.1.0",
        summary: "Closes the snapshot.", reply: "OK", effect: .changesState)

    package static let entries = CommandMetadata(
        "entries", arity: -1, [.readonly, .noScript], group: .larder, since: "0.1.0",
        complexity: "O(COUNT) for each call, and O(M) with M the entries that LevelDB does not have yet",
        syntax: "[AFTER key] [PREFIX prefix] [COUNT count] [BYTES bytes] [NOVALUES]",
        summary:
            "Lists fresh and stale entries in key order, with everything that PLACE needs. AFTER continues after a "
            + "key, which need not exist. A call returns at most COUNT entries (100 by default), and stops when their "
            + "keys and values reach BYTES (1048576 by default). NOVALUES returns null for each value.",
        reply: "array of the key for the next AFTER (null at the end) and an array of entries: key, value, stored-at, "
            + "rule (governed, own, never), deadline (milliseconds since 1970, -1 never), grace (milliseconds, -1 the "
            + "database's), codec, array of tags")

    package static let place = CommandMetadata(
        "place", arity: -5, [.write, .denyOOM, .creates], keys: .one, group: .larder, since: "0.1.0",
        complexity: "O(N) with N the value's length",
        syntax: "key value STOREDAT unix-time-milliseconds [NX] [PXAT unix-time-milliseconds | NEVER] [GRACE seconds] "
            + "[CODEC raw|json|plist|custom] [TAGS count tag [tag ...]] "
            + "[VERSION version [OVER unix-time-milliseconds]]",
        summary:
            "Stores an entry with an earlier storage time, for imports. An existing entry is kept if it was stored "
            + "later; with NX, also if it is fresh. Without PXAT and NEVER the database's policy applies. VERSION "
            + "applies a change of another larder: the later change wins, but an entry that was not changed after OVER "
            + "is always replaced.",
        reply: "stored; kept if the existing entry stays; expired if the new entry's lifetime and grace are over",
        access: ["RW access update"], tag: .restore)

    package static let changes = CommandMetadata(
        "changes", arity: -3, [.readonly, .noMulti, .noScript], group: .larder, since: "0.1.0",
        complexity:
            "O(COUNT) for each call; in a full pass also O(M) with M the entries that LevelDB does not have yet",
        syntax: "SINCE position [COUNT count] [BYTES bytes] [PREFIX prefix] [BLOCK milliseconds]",
        summary:
            "Returns the changes of the current database since a position: 0 starts with a full pass of all entries, $ "
            + "with the next change. Every reply has the next position. If the changes since a position are no longer "
            + "available, a full pass starts. BLOCK waits for the next change, 0 without limit.",
        reply:
            "map of position; state (scan: a full pass is in progress; changes: there are more; current: no more); "
            + "reason (asked, other-feed or forgotten if a full pass starts, otherwise null); range (in a full pass: "
            + "the key after which it begins, and its last key; otherwise null); time (milliseconds since 1970); "
            + "changes: arrays of kind, sequence, version, and for stored the 8 fields of ENTRIES, for removed the "
            + "key, for purged-prefix the prefix, for purged-tags an array of tags"
    )

    package static let unplace = CommandMetadata(
        "unplace", arity: -3, [.write], keys: .one, group: .larder, since: "0.1.0",
        syntax: "key version [TAG tag [tag ...]]",
        summary:
            "Removes an entry that another larder has removed, unless it was changed here after that version; with TAG "
            + "only if it has one of the tags.",
        reply: "removed; kept if the entry was changed later; absent if there is no entry, or it has none of the tags",
        access: ["RM delete"], tag: .delete)

    package static let backup = CommandMetadata(
        "backup", arity: 2, [.admin, .noMulti, .noScript], group: .larder, since: "0.1.0",
        complexity: "O(N) with N the bytes of all files: all are read, but unchanged tables are not written again",
        syntax: "directory",
        summary:
            "Creates a backup of the whole larder at one instant, in a backup directory. Other clients continue.",
        reply:
            "map of path, files, bytes, new-bytes (not in the previous backup), milliseconds, warnings (array: "
            + "problems of previous backups)")

    package static let check = CommandMetadata(
        "check", arity: -1, [.admin, .noMulti, .noScript], group: .larder, since: "0.1.0",
        complexity: "O(N) with N the bytes of all files", syntax: "[DATABASE name] [REPAIR]",
        summary:
            "Reads all files of the larder at one instant and reports problems. Other clients continue. REPAIR also "
            + "salvages damaged databases and completes their expiry indexes.",
        reply: "map of problems and left (the problems after REPAIR): arrays of maps of kind (damage: REPAIR handles "
            + "it; manual: only an operator can fix it; unseen: a file could not be checked), place, what, remedy; "
            + "notes, failures (of REPAIR), databases, entries, operations, milliseconds")
}
