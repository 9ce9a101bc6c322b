import LarderVocabulary

/// Commands that Redis does not have.
extension CommandMetadata {
    static let larder: [CommandMetadata] = [
        .meta, .policy, .limit, .fetch, .release, .databases, .purge, .tags, .snapshot, .entries, .place, .changes,
        .unplace, .backup, .check, .origin,
    ]

    package static let meta = CommandMetadata(
        "meta", arity: 2, [.readonly, .fast], keys: .one, group: .larder, since: "0.1.0", syntax: "key",
        summary: "Returns when an entry was stored, when it expires, and why.",
        reply: "map of stored-at, age, deadline, ttl (milliseconds, -1 never), rule, policy, grace, size, codec, "
            + "state (fresh, or stale: within its grace, or not to be verified at the origin); null when there is neither",
        access: ["RO"])

    package static let policy = CommandMetadata(
        "policy", arity: -1, [.readonly, .writesWithArguments], group: .larder, since: "0.1.0",
        syntax: "[name|seconds [GRACE seconds] [JITTER percent]]",
        summary: "Returns or sets the current database's update policy: \(UpdatePolicy.syntax). "
            + "GRACE keeps expired entries for FETCH; JITTER shortens lives at random. What is not named stays.",
        reply: "map of policy, interval (milliseconds, -1 never), grace (milliseconds), jitter (percent); OK when it "
            + "was set")

    package static let limit = CommandMetadata(
        "limit", arity: -1, [.admin, .ofSelectedDatabase], group: .larder, since: "0.1.0", syntax: "[bytes|NONE]",
        summary: "Returns or sets how many bytes the current database may take on the disk; 0 or NONE: as many as the "
            + "larder may (--max-disk). What is worth the least is evicted. The limit is kept with the database.",
        reply: "map of limit (0: none), bytes (on the disk), evicted (entries, since the start); OK when it was set")

    package static let origin = CommandMetadata(
        "origin", arity: -1, [.admin, .ofSelectedDatabase, .noMulti, .noScript], group: .larder, since: "0.1.0",
        syntax:
            "[url [THROUGH|AROUND|BEHIND] [STALE] [BCAST [PREFIX prefix [PREFIX prefix ...]] | LIFETIMES] "
            + "[REPLICAS milliseconds] [USER name] [PASSWORDFILE path] [DISCARD] | NONE [DISCARD] | PATH [larder ...]]",
        summary:
            "Returns or sets the origin of the current database: what is not known here is asked there, and what is "
            + "written goes there. THROUGH keeps what was written, AROUND forgets it, BEHIND acknowledges it here and "
            + "brings it there later; with STALE, GET and the like are answered within the grace while the origin cannot be "
            + "asked. The origin notes what was read here and says what changes; with BCAST it says what changes of all keys "
            + "or of those with a PREFIX, with LIFETIMES nothing: what was read is believed until its time is over. REPLICAS "
            + "asks a replica of a cluster too when there is no answer for so long; what that says is stale. While writes "
            + "wait, they are brought to no other origin, unless DISCARD forgets them. PATH lists the larders on the way, up to "
            + "one of those that are named.",
        reply:
            "map of url (empty: none), writing, stale, hears (tracking, broadcast, lifetimes), bound (how old what is fresh "
            + "may be, in milliseconds; -1: without end), replicas (milliseconds; 0: never), prefixes, state, known "
            + "(entries), outbox (keys that wait), and counters; OK when it was set; array of larder/database with PATH",
        secrets: .from(1))

    package static let fetch = CommandMetadata(
        "fetch", arity: -2, [.readonly, .noMulti, .noScript], keys: .one, group: .larder, since: "0.1.0",
        syntax: "key [MAXAGE milliseconds] [WAIT milliseconds] [LEASE milliseconds] [IFNOT version]",
        summary: "Returns the fresh value of a key, or chooses this client of all to fetch it from its origin. "
            + "Others get a stale value meanwhile, or wait.",
        reply: "array of state (fresh, same, stale, lead, wait, absent, failed), value or null, token or null, "
            + "version or null, age (milliseconds, -1 without an entry), ttl (milliseconds, -1 never; of the lease or "
            + "the rest, where there is no entry)", access: ["RW access"], effect: .none)

    package static let release = CommandMetadata(
        "release", arity: -3, [.write, .denyOOM, .noScript], keys: .one, group: .larder, since: "0.1.0",
        syntax: "key token [UNCHANGED | ABSENT milliseconds | FAILED milliseconds]",
        summary: "Gives up the right to refresh a key. UNCHANGED: its value is still right and gets a new life; "
            + "ABSENT: there is none, for that time or until a tag is purged; FAILED: nobody tries again for that time.",
        reply: "OK; null when the token is no longer good", access: ["RW update"], tag: .set)

    package static let databases = CommandMetadata(
        "databases", arity: 1, [.admin, .showsReadable], group: .larder, since: "0.1.0",
        complexity: "O(N) with N the entries of all databases written since they were last counted",
        summary: "Lists the databases that have files.",
        reply:
            "array of maps of name, policy, interval, grace, jitter, entries (fresh), stale, ends-minute, ends-hour, ends-day and ends-never (the fresh entries that end within that time), bytes, limit (0: none), state, damage"
    )

    package static let purge = CommandMetadata(
        "purge", arity: -1, [.write, .wholeDatabase], group: .larder, since: "0.1.0",
        complexity: "O(1) to empty the database, and O(N) to count what was removed; O(N) with EXPIRED or PREFIX; "
            + "O(1) with TAG, however many entries have the tags",
        syntax: "[EXPIRED | PREFIX prefix | TAG tag [tag ...] [SOFT] "
            + "| UPTO version [PREFIX prefix] [TAG tag [tag ...]]]",
        summary: "Empties the current database at once, or removes its expired entries, or those whose keys "
            + "begin with a prefix (in commit units of at most 512), or those with a tag; with SOFT these are stale "
            + "instead of gone. A last word SOFT behind a tag is that option: name a tag of that name first. "
            + "UPTO removes what was not changed behind a version, where another larder was purged.",
        reply: "map of entries, bytes, milliseconds; OK with TAG; integer with UPTO: the removed entries")

    package static let tags = CommandMetadata(
        "tags", arity: 2, [.readonly], keys: .one, group: .larder, since: "0.1.0", syntax: "key",
        summary: "Returns the tags of an entry.", reply: "array; null when there is no fresh entry", access: ["RO"])

    package static let snapshot = CommandMetadata(
        "snapshot", arity: 2, [.readonly, .noScript], group: .larder, since: "0.1.0",
        complexity: "O(M) with M the entries that LevelDB does not have yet", syntax: "OPEN | CLOSE",
        summary: "From OPEN to CLOSE, this connection reads the current database as it was at OPEN.", reply: "OK",
        effect: .changesState)

    package static let entries = CommandMetadata(
        "entries", arity: -1, [.readonly, .noScript], group: .larder, since: "0.1.0",
        complexity: "O(COUNT) for each call, and O(M) with M the entries that LevelDB does not have yet",
        syntax: "[AFTER key] [PREFIX prefix] [COUNT count] [BYTES bytes] [NOVALUES]",
        summary:
            "Lists fresh and stale entries with all that PLACE stores again, step by step in the order of keys: AFTER "
            + "goes on behind a key, which need not exist. A step has at most COUNT entries (100), and ends with the entry "
            + "that brings its keys and values to BYTES (1048576). With NOVALUES null stands for each value.",
        reply: "array of the key to go on AFTER, null at the end, and an array of entries: key, value, stored-at, rule "
            + "(governed, own, never), deadline (milliseconds since 1970, -1 never), grace (milliseconds, -1 the database's), "
            + "codec, array of tags")

    package static let place = CommandMetadata(
        "place", arity: -5, [.write, .denyOOM, .creates], keys: .one, group: .larder, since: "0.1.0",
        complexity: "O(N) with N the value's length",
        syntax: "key value STOREDAT unix-time-milliseconds [NX] [PXAT unix-time-milliseconds | NEVER] [GRACE seconds] "
            + "[CODEC raw|json|plist|custom] [TAGS count tag [tag ...]] "
            + "[VERSION version [OVER unix-time-milliseconds]]",
        summary:
            "Stores an entry as if it was stored at an earlier time, unless what is there was stored later, or with NX "
            + "is fresh. Without PXAT and NEVER the database's policy says how long it stays. For imports. "
            + "With VERSION it is a change of another larder, and the later change stays: what is known of the last change "
            + "here counts, else when the entry was stored; one that was changed last up to OVER gives way in any case.",
        reply:
            "stored; kept when what is there stays; expired when the entry's time and its grace are over, so that it is "
            + "not stored", access: ["RW access update"], tag: .restore)

    package static let changes = CommandMetadata(
        "changes", arity: -3, [.readonly, .noMulti, .noScript], group: .larder, since: "0.1.0",
        complexity:
            "O(COUNT) for each call; in a full pass also O(M) with M the entries that LevelDB does not have yet",
        syntax: "SINCE position [COUNT count] [BYTES bytes] [PREFIX prefix] [BLOCK milliseconds]",
        summary:
            "Returns what has changed in the current database behind a position: 0 begins with a full pass of all "
            + "entries, $ with the next change, and every answer says where to go on. Where the changes behind a position "
            + "are not known any more, a full pass begins. At the end it waits for the next change, up to BLOCK milliseconds, with 0 for ever.",
        reply: "map of position; state (scan: a full pass is under way; changes: there are more; current: there are no "
            + "more); reason (asked, other-feed or forgotten where a full pass begins, else null); range (of the keys of "
            + "which a full pass has named all: behind which, null from the first, up to which, null to the last; else "
            + "null); time (of the larder, milliseconds since 1970); changes: array of arrays of kind, sequence, version, "
            + "and of stored: the 8 fields of ENTRIES; of removed: key; of purged: nothing; of purged-prefix: prefix; "
            + "of purged-tags: array of tags"
    )

    package static let unplace = CommandMetadata(
        "unplace", arity: -3, [.write], keys: .one, group: .larder, since: "0.1.0",
        syntax: "key version [TAG tag [tag ...]]",
        summary: "Removes what another larder has removed, unless the entry was changed here behind that version; with "
            + "TAG only an entry that has one of the tags.",
        reply: "removed; kept when the entry is later; absent when there is none", access: ["RM delete"], tag: .delete)

    package static let backup = CommandMetadata(
        "backup", arity: 2, [.admin, .noMulti, .noScript], group: .larder, since: "0.1.0",
        complexity: "O(N) with N the bytes of all files, which are read; what the former backup has is not written",
        syntax: "directory",
        summary: "Makes a backup of the whole larder, as it is at one instant, in a directory of backups, which is "
            + "made if it is missing. Others go on.",
        reply: "map of path, files, bytes, new-bytes (which the former backup does not have), milliseconds, warnings "
            + "(array: what is wrong or strange about former backups)")

    package static let check = CommandMetadata(
        "check", arity: -1, [.admin, .noMulti, .noScript], group: .larder, since: "0.1.0",
        complexity: "O(N) with N the bytes of all files", syntax: "[DATABASE name] [REPAIR]",
        summary:
            "Reads all files of the larder, as they are at one instant, and tells what is wrong with them. Others go "
            + "on. REPAIR also salvages damaged databases and completes their expiry indexes.",
        reply: "map of problems and left (after REPAIR): arrays of maps of kind (damage, manual, unseen), place, what, "
            + "remedy; notes, failures (of REPAIR), databases, entries, operations, milliseconds")
}
