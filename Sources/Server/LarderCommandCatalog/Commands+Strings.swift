/// Commands that store, read and change values: whole values, parts of them, and numbers.
extension CommandMetadata {
    static let strings: [CommandMetadata] = [
        .get, .set, .getdel, .mget, .mset, .strlen, .setnx, .setex, .psetex, .getset, .getex, .msetnx, .append,
        .getrange, .substr, .setrange, .incr, .decr, .incrby, .decrby, .incrbyfloat,
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
        replacement: Replacement(since: "6.2.0", text: "`SET key value GET`"), tag: .set)

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
        reply: "bulk; empty when there is no fresh entry", replacement: Replacement(since: "2.0.0", text: "`GETRANGE`"))

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
}
