/// Commands that store, read and change values: whole values, parts of them, and numbers.
extension CommandMetadata {
    static let strings: [CommandMetadata] = [
        .get, .set, .getdel, .mget, .mset, .strlen, .setnx, .setex, .psetex, .getset, .getex, .msetnx, .append,
        .getrange, .substr, .setrange, .incr, .decr, .incrby, .decrby, .incrbyfloat, .increx,
    ]

    package static let get = CommandMetadata(
        "get", arity: 2, [.readonly, .fast], keys: .one, group: .string, since: "1.0.0", syntax: "key",
        summary: "Returns the value of a key.", reply: "bulk; null when there is no fresh entry")

    package static let set = CommandMetadata(
        "set", arity: -3, [.write, .denyOOM, .creates], keys: .one, group: .string, since: "1.0.0",
        syntax: "key value [NX | XX | IFEQ value | IFNE value | IFDEQ digest | IFDNE digest] [GET] [EX seconds | "
            + "PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | KEEPTTL | POLICY "
            + "name|seconds] [CODEC raw|json|plist|custom] [GRACE seconds] [JITTER percent] [TOKEN token] "
            + "[TAGS count tag [tag ...] | KEEPTAGS]",
        summary: "Stores a value; options set its lifetime, otherwise the database's policy applies. "
            + "KEEPTTL keeps the deadline, grace and tags of a fresh entry; with TOKEN, also of a stale entry, whose "
            + "lifetime starts again with its previous length. KEEPTAGS keeps the tags.",
        reply: "OK; null when the condition is not met; with GET the previous value or null",
        access: ["RW access update variable_flags"], keyUse: .overwritesUnlessGET,
        keyNotes: "With GET, returns the previous value.", tag: .set, overwrites: .words(3))

    package static let getdel = CommandMetadata(
        "getdel", arity: 2, [.write, .fast], keys: .one, group: .string, since: "6.2.0", syntax: "key",
        summary: "Returns the value of a key and removes the key.", reply: "bulk; null when there is no fresh entry",
        access: ["RW access delete"], tag: .delete)

    package static let mget = CommandMetadata(
        "mget", arity: -2, [.readonly, .fast], keys: .all, group: .string, since: "1.0.0", complexity: "O(N)",
        syntax: "key [key ...]", summary: "Returns the values of several keys at one instant.",
        reply: "array of bulk or null", tips: [.requestMultiShard])

    package static let mset = CommandMetadata(
        "mset", arity: -3, [.write, .denyOOM, .creates], keys: .pairs, group: .string, since: "1.0.1",
        complexity: "O(N)", syntax: "key value [key value ...]", summary: "Stores several values, all or none.",
        reply: "OK", access: ["OW update"], tips: [.requestMultiShard, .responseAllSucceeded], tag: .set,
        overwrites: .pairs)

    package static let strlen = CommandMetadata(
        "strlen", arity: 2, [.readonly, .fast], keys: .one, group: .string, since: "2.2.0", syntax: "key",
        summary: "Returns the length of a value in bytes.", reply: "integer; 0 when there is no fresh entry",
        access: ["RO"])

    package static let setnx = CommandMetadata(
        "setnx", arity: 3, [.write, .denyOOM, .fast, .creates], keys: .one, group: .string, since: "1.0.0",
        syntax: "key value", summary: "Stores a value if the key has no fresh entry.",
        reply: "1; 0 when there is a fresh entry", access: ["OW insert"], tag: .set)

    package static let setex = CommandMetadata(
        "setex", arity: 4, [.write, .denyOOM, .creates], keys: .one, group: .string, since: "2.0.0",
        syntax: "key seconds value", summary: "Stores a value that stays fresh for a number of seconds.", reply: "OK",
        access: ["OW update"], tag: .set)

    package static let psetex = CommandMetadata(
        "psetex", arity: 4, [.write, .denyOOM, .creates], keys: .one, group: .string, since: "2.6.0",
        syntax: "key milliseconds value", summary: "Stores a value that stays fresh for a number of milliseconds.",
        reply: "OK", access: ["OW update"], tag: .set)

    package static let getset = CommandMetadata(
        "getset", arity: 3, [.write, .denyOOM, .fast, .creates], keys: .one, group: .string, since: "1.0.0",
        syntax: "key value", summary: "Stores a value like SET, and returns the previous value.",
        reply: "bulk; null when there was no fresh entry",
        replacement: ("6.2.0", "`SET key value GET`"), tag: .set)

    package static let getex = CommandMetadata(
        "getex", arity: -2, [.write, .fast], keys: .one, group: .string, since: "6.2.0",
        syntax: "key [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | PERSIST]",
        summary: "Returns the value of a key and changes its entry's deadline.",
        reply: "bulk; null when there is no fresh entry", keyNotes: "It may change the deadline of what it reads.",
        tag: .getex)

    package static let msetnx = CommandMetadata(
        "msetnx", arity: -3, [.write, .denyOOM, .creates], keys: .pairs, group: .string, since: "1.0.1",
        complexity: "O(N)", syntax: "key value [key value ...]",
        summary: "Stores several values if none of the keys has a fresh entry.",
        reply: "1; 0 when nothing was stored", access: ["OW insert"], tips: [.requestMultiShard, .responseMinimum],
        tag: .set)

    package static let append = CommandMetadata(
        "append", arity: 3, [.write, .denyOOM, .fast, .creates], keys: .one, group: .string, since: "2.0.0",
        complexity: "O(N) with N the value's length", syntax: "key value",
        summary: "Appends bytes to a value; the entry keeps its deadline rule and gets a new storage time.",
        reply: "integer: the new length", access: ["RW insert"], tag: .append)

    package static let getrange = CommandMetadata(
        "getrange", arity: 4, [.readonly], keys: .one, group: .string, since: "2.4.0",
        complexity: "O(N) with N the bytes returned", syntax: "key start end",
        summary: "Returns the bytes of a value from a start to an end, both included.",
        reply: "bulk; empty when there is no fresh entry")

    package static let substr = CommandMetadata(
        "substr", arity: 4, [.readonly], keys: .one, group: .string, since: "1.0.0",
        complexity: "O(N) with N the bytes returned", syntax: "key start end", summary: "The old name of GETRANGE.",
        reply: "bulk; empty when there is no fresh entry", replacement: ("2.0.0", "`GETRANGE`"))

    package static let setrange = CommandMetadata(
        "setrange", arity: 4, [.write, .denyOOM, .creates], keys: .one, group: .string, since: "2.2.0",
        complexity: "O(N) with N the value's length", syntax: "key offset value",
        summary: "Overwrites a part of a value; a shorter value is first extended with zeros. The entry keeps "
            + "its deadline rule and gets a new storage time.", reply: "integer: the new length",
        access: ["RW update"], tag: .setrange)

    package static let incr = CommandMetadata(
        "incr", arity: 2, [.write, .denyOOM, .fast, .creates], keys: .one, group: .string, since: "1.0.0",
        syntax: "key",
        summary: "Adds 1 to a number; a missing entry counts as 0. The entry keeps its deadline rule "
            + "and gets a new storage time.", reply: "integer: the new value", tag: .incrby)

    package static let decr = CommandMetadata(
        "decr", arity: 2, [.write, .denyOOM, .fast, .creates], keys: .one, group: .string, since: "1.0.0",
        syntax: "key",
        summary: "Subtracts 1 from a number; a missing entry counts as 0. The entry keeps its deadline rule "
            + "and gets a new storage time.", reply: "integer: the new value", tag: .incrby)

    package static let incrby = CommandMetadata(
        "incrby", arity: 3, [.write, .denyOOM, .fast, .creates], keys: .one, group: .string, since: "1.0.0",
        syntax: "key increment",
        summary: "Adds an integer to a number; a missing entry counts as 0. The entry keeps its deadline rule "
            + "and gets a new storage time.", reply: "integer: the new value", tag: .incrby)

    package static let decrby = CommandMetadata(
        "decrby", arity: 3, [.write, .denyOOM, .fast, .creates], keys: .one, group: .string, since: "1.0.0",
        syntax: "key decrement",
        summary: "Subtracts an integer from a number; a missing entry counts as 0. The entry keeps its deadline rule "
            + "and gets a new storage time.", reply: "integer: the new value", tag: .incrby)

    package static let incrbyfloat = CommandMetadata(
        "incrbyfloat", arity: 3, [.write, .denyOOM, .fast, .creates], keys: .one, group: .string, since: "2.6.0",
        syntax: "key increment",
        summary: "Adds a decimal number to a number; a missing entry counts as 0. The entry keeps its deadline rule "
            + "and gets a new storage time.", reply: "bulk: the new value", tag: .incrbyfloat)

    package static let increx = CommandMetadata(
        "increx", arity: -2, [.write, .denyOOM, .fast, .creates], keys: .one, group: .string, since: "8.8.0",
        syntax: "key [BYINT increment | BYFLOAT increment] [LBOUND bound] [UBOUND bound] [SATURATE] [EX seconds | "
            + "PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | PERSIST] [ENX]",
        summary: "Adds 1, or an increment, to a number if the sum is within the bounds; with SATURATE, up to the "
            + "bound. May set the deadline; with ENX only if there is none yet.",
        reply: "array: the value, and what was added: 0 if the sum is outside the bounds", tag: .incrby)
}

/// Commands that compare values: common subsequences (LCS), digests, and conditional changes.
extension CommandMetadata {
    static let comparison: [CommandMetadata] = [.lcs, .digest, .delex, .msetex]

    package static let lcs = CommandMetadata(
        "lcs", arity: -3, [.readonly], keys: .two, group: .string, since: "7.0.0",
        complexity: "O(N*M) with N and M the values' lengths, in time and memory",
        syntax: "key1 key2 [LEN] [IDX] [MINMATCHLEN min-match-len] [WITHMATCHLEN]",
        summary: "Returns the longest common subsequence of two values.",
        reply: "bulk; LEN: integer; IDX: map of the matching ranges, from the last to the first, and the length")

    package static let digest = CommandMetadata(
        "digest", arity: 2, [.readonly, .fast], keys: .one, group: .string, since: "8.4.0",
        complexity: "O(N) with N the value's length", syntax: "key",
        summary: "Returns the XXH3 hash of a value, to compare it without sending it.",
        reply: "bulk of 16 hexadecimal digits; null when there is no fresh entry")

    package static let delex = CommandMetadata(
        "delex", arity: -2, [.write, .fast], keys: .one, group: .string, since: "8.4.0",
        complexity: "O(N) with N the value's length",
        syntax: "key [IFEQ value | IFNE value | IFDEQ digest | IFDNE digest]",
        summary: "Removes a key if its value, or the digest of its value, equals or differs from the given one.",
        reply: "1; 0 when there is no fresh entry or the condition is not met", access: ["RM delete"], tag: .delete)

    package static let msetex = CommandMetadata(
        "msetex", arity: -4, [.write, .denyOOM, .creates], keys: .countedPairs,
        group: .string, since: "8.4.0", complexity: "O(N)",
        syntax: "numkeys key value [key value ...] [NX | XX] [EX seconds | PX milliseconds | EXAT "
            + "unix-time-seconds | PXAT unix-time-milliseconds | KEEPTTL | POLICY name|seconds] [CODEC "
            + "raw|json|plist|custom] [GRACE seconds] [JITTER percent] [TOKEN token ...] [TAGS count tag [tag "
            + "...] | KEEPTAGS]",
        summary: "Stores several values with one lifetime, all or none. NX requires that none of the keys has a "
            + "fresh entry, XX that all have one.", reply: "1; 0 when the condition is not met", access: ["OW update"],
        tag: .set)
}

/// Commands that use a value as a sequence of bits.
extension CommandMetadata {
    static let bits: [CommandMetadata] = [.setbit, .getbit, .bitcount, .bitpos, .bitop, .bitfield, .bitfieldReadonly]

    package static let setbit = CommandMetadata(
        "setbit", arity: 4, [.write, .denyOOM, .creates], keys: .one, group: .bitmap, since: "2.2.0",
        complexity: "O(N) with N the value's length", syntax: "key offset value",
        summary: "Sets one bit; a shorter value is first extended with zeros. The entry keeps its deadline rule "
            + "and gets a new storage time.", reply: "integer: the previous bit", tag: .setbit)

    package static let getbit = CommandMetadata(
        "getbit", arity: 3, [.readonly, .fast], keys: .one, group: .bitmap, since: "2.2.0", syntax: "key offset",
        summary: "Returns one bit.", reply: "integer; 0 after the value's end")

    package static let bitcount = CommandMetadata(
        "bitcount", arity: -2, [.readonly], keys: .one, group: .bitmap, since: "2.6.0",
        complexity: "O(N) with N the value's length", syntax: "key [start end [BYTE | BIT]]",
        summary: "Counts the set bits.", reply: "integer; 0 when there is no fresh entry")

    package static let bitpos = CommandMetadata(
        "bitpos", arity: -3, [.readonly], keys: .one, group: .bitmap, since: "2.8.7",
        complexity: "O(N) with N the value's length", syntax: "key bit [start [end [BYTE | BIT]]]",
        summary: "Returns the position of the first bit that is 1 or 0.",
        reply: "integer; -1 when there is none; without an end, 0 is found after the value at the latest")

    package static let bitop = CommandMetadata(
        "bitop", arity: -4, [.write, .denyOOM, .creates], keys: KeyPositions(first: 2, last: -1, step: 1),
        group: .bitmap, since: "2.6.0", complexity: "O(N) with N the values' lengths together",
        syntax: "AND | OR | XOR | NOT destination key [key ...]",
        summary: "Combines values bit by bit and stores the result; shorter values are extended with zeros. If "
            + "no source has a value, the destination is removed.", reply: "integer: the length of the result",
        access: ["OW update", "RO access"], tag: .bitop)

    package static let bitfield = CommandMetadata(
        "bitfield", arity: -2, [.write, .denyOOM, .creates], keys: .one, group: .bitmap, since: "3.2.0",
        complexity: "O(N) with N the value's length, and O(1) for each operation",
        syntax: "key [GET type offset | [OVERFLOW WRAP | SAT | FAIL] SET type offset value | INCRBY type offset "
            + "increment] ...",
        summary: "Reads and writes integers of 1 to 64 bits in a value; a written entry keeps its deadline rule "
            + "and gets a new storage time.",
        reply: "array of integers; null if OVERFLOW FAIL stopped an operation",
        access: ["RW access update variable_flags"],
        keyUse: .readsIfOnlyGET, keyNotes: "It may read, change or do both.", tag: .setbit)

    package static let bitfieldReadonly = CommandMetadata(
        "bitfield_ro", arity: -2, [.readonly, .fast], keys: .one, group: .bitmap, since: "6.0.0",
        complexity: "O(1) for each operation", syntax: "key [GET type offset ...]",
        summary: "Reads integers of 1 to 64 bits in a value.", reply: "array of integers")
}
