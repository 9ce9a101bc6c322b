import RESP

/// What COMMAND INFO says beyond the row of a command: Redis' categories, tips and key specifications, from the row where
/// they follow from it, and from the tables here where they do not.
extension CommandSpec {
    /// The flags as COMMAND shows them.
    var flagNames: [String] {
        guard subcommands.isEmpty || name == "command" else { return [] }
        var names = flags.names
        if Self.growing.contains(name) { names.insert("denyoom", at: min(1, names.count)) }
        return names
    }

    /// The positions as COMMAND shows them: none for what has subcommands.
    var shownKeys: KeyPositions {
        if let channels = Self.channelPositions[name] { return channels }
        return subcommands.isEmpty && keys.countAt == 0 ? keys : .none
    }

    /// Sharded channels belong to a node of a cluster as keys do, and are told as keys that are none.
    private static let channelPositions: [String: KeyPositions] = [
        "spublish": .one, "ssubscribe": .all, "sunsubscribe": .all,
    ]

    /// Commands that Redis refuses when memory is short.
    private static let growing: Set<String> = [
        "append", "bitfield", "bitop", "copy", "decr", "decrby", "getset", "incr", "incrby", "incrbyfloat", "mset",
        "msetex", "msetnx", "psetex", "restore", "set", "setbit", "setex", "setnx", "setrange",
    ]

    // MARK: Categories

    /// In the order in which Redis tells them.
    private static let categoryOrder = [
        "keyspace", "read", "write", "string", "bitmap", "pubsub", "admin", "fast", "slow", "dangerous", "connection",
        "transaction",
    ]

    /// The categories that access lists know the command by, such as `@read`.
    var categories: [String] {
        var own: Set<String> = [flags.contains(.fast) ? "fast" : "slow"]
        if subcommands.isEmpty {
            if flags.contains(.write) { own.insert("write") }
            if flags.contains(.readonly) { own.insert("read") }
            if flags.contains(.pubsub) { own.insert("pubsub") }
            if flags.contains(.admin) || Self.administrative.contains(name) { own.formUnion(["admin", "dangerous"]) }
            if Self.dangerous.contains(name) { own.insert("dangerous") }
            switch group {
            case "string": own.insert("string")
            case "bitmap": own.insert("bitmap")
            case "generic": own.insert("keyspace")
            case "connection": own.insert("connection")
            case "transactions": own.insert("transaction")
            default: break
            }
            if Self.ofKeyspace.contains(name) { own.insert("keyspace") }
        }
        if name == "wait" { own.remove("keyspace") }
        if name == "wait" || name.hasPrefix("command") { own.insert("connection") }
        return Self.categoryOrder.filter { own.contains($0) }.map { "@" + $0 }
    }

    private static let administrative: Set<String> = ["lastsave", "role"]
    private static let dangerous: Set<String> = ["flushall", "flushdb", "info", "keys", "restore", "swapdb"]
    private static let ofKeyspace: Set<String> = ["dbsize", "flushall", "flushdb", "swapdb"]

    // MARK: Documentation

    /// What COMMAND DOCS says of the standing of a command.
    var documentationFlags: [String] { replacement == nil ? (name == "debug" ? ["syscmd"] : []) : ["deprecated"] }

    /// Since which version of Redis another command is to be taken, and which.
    var replacement: (since: String, text: String)? {
        switch name {
        case "getset": ("6.2.0", "`SET key value GET`")
        case "substr": ("2.0.0", "`GETRANGE`")
        default: nil
        }
    }

    // MARK: Tips

    /// What Redis advises clients of.
    var tips: [String] { Self.tipsByName[name] ?? [] }

    private static let tipsByName: [String: [String]] = {
        let output = "nondeterministic_output"
        let order = "nondeterministic_output_order"
        let manyShards = "request_policy:multi_shard"
        let allShards = "request_policy:all_shards"
        let allNodes = "request_policy:all_nodes"
        let sum = "response_policy:agg_sum"
        let succeeded = "response_policy:all_succeeded"
        let special = "response_policy:special"
        var tips: [String: [String]] = [
            "mget": [manyShards], "mset": [manyShards, succeeded], "msetnx": [manyShards, "response_policy:agg_min"],
            "scan": [output, "request_policy:special"], "keys": [allShards, order], "randomkey": [allShards, output],
            "dbsize": [allShards, sum], "flushall": [allShards, succeeded], "flushdb": [allShards, succeeded],
            "ping": [allShards, succeeded], "wait": [allShards, "response_policy:agg_min"],
            "info": [output, allShards, special], "command": [order], "command|docs": [order],
            "command|info": [order], "command|list": [order], "config|set": [allNodes, succeeded],
            "slowlog|get": [allNodes, output], "slowlog|len": [allNodes, sum, output],
            "slowlog|reset": [allNodes, succeeded], "latency|reset": [allNodes, succeeded],
            "memory|purge": [allShards, succeeded],
        ]
        for name in ["del", "exists", "touch", "unlink"] { tips[name] = [manyShards, sum] }
        for name in [
            "client|info", "client|list", "dump", "lastsave", "object|encoding", "object|freq", "object|idletime",
            "object|refcount", "pttl", "time", "ttl",
        ] { tips[name] = [output] }
        for name in ["doctor", "graph", "histogram", "history", "latest"] {
            tips["latency|\(name)"] = [output, allNodes, special]
        }
        for name in ["doctor", "malloc-stats", "stats"] { tips["memory|\(name)"] = [output, allShards, special] }
        return tips
    }()

    // MARK: Keys

    /// What a command does with its keys: one entry for all, or one for the first key and one for the others.
    private var keyAccess: [[String]] {
        let words = Self.accessByName[name] ?? [flags.contains(.write) ? "RW access update" : "RO access"]
        return words.map { $0.split(separator: " ").map(String.init) }
    }

    private static let accessByName: [String: [String]] = {
        var access: [String: [String]] = [
            "append": ["RW insert"], "bitop": ["OW update", "RO access"], "copy": ["RO access", "OW update"],
            "getdel": ["RW access delete"], "mset": ["OW update"], "rename": ["RW access delete", "OW update"],
            "renamenx": ["RW access delete", "OW insert"], "bitfield": ["RW access update variable_flags"],
            "set": ["RW access update variable_flags"],
        ]
        for name in ["del", "unlink", "delex"] { access[name] = ["RM delete"] }
        for name in channelPositions.keys { access[name] = ["not_key"] }
        for name in ["msetnx", "setnx"] { access[name] = ["OW insert"] }
        for name in ["setex", "psetex", "restore", "msetex"] { access[name] = ["OW update"] }
        for name in ["expire", "expireat", "pexpire", "pexpireat", "persist", "setrange"] {
            access[name] = ["RW update"]
        }
        for name in [
            "strlen", "exists", "touch", "type", "object|encoding", "object|freq", "object|idletime", "object|refcount",
            "memory|usage", "watch", "meta",
        ] { access[name] = ["RO"] }
        return access
    }()

    private static let keyNotes = [
        "set": "With GET it tells the former value.", "getex": "It may change the deadline of what it reads.",
        "bitfield": "It may read, change or do both.",
    ]

    /// What is done with a key of a call.
    /// - Parameters:
    ///   - position: the key's place among the keys.
    ///   - count: how many words the call has.
    ///   - word: a word's bytes.
    func keyFlags(position: Int, count: Int, _ word: (Int) -> UnsafeRawBufferPointer) -> [String] {
        switch name {
        // SET only stores unless GET stands behind the value.
        case "set" where !(3..<max(3, count)).contains { equalsIgnoringCase(word($0), "GET") }: return ["OW", "update"]
        case "bitfield" where Self.onlyReads(bitfield: count, word): return ["RO", "access"]
        default:
            let access = keyAccess
            return access[min(position, access.count - 1)].filter { $0 != "variable_flags" }
        }
    }

    /// Whether BITFIELD has reading operations only, and nothing that it does not understand.
    private static func onlyReads(bitfield count: Int, _ word: (Int) -> UnsafeRawBufferPointer) -> Bool {
        var index = 2
        while index < count {
            if equalsIgnoringCase(word(index), "GET"), index + 2 < count {
                index += 3
            } else if equalsIgnoringCase(word(index), "OVERFLOW"), index + 1 < count {
                index += 2
            } else {
                return false
            }
        }
        return true
    }

    /// Where the keys of a call stand, and what is done with them.
    struct KeySpecification {
        /// Why the flags are what they are, where that is not plain.
        let notes: String?
        let flags: [String]
        let index: Int
        /// Counted from `index`, or from the end if negative.
        let last: Int
        let step: Int

        func write(to replies: inout ReplyBuffer) {
            replies.map(count: notes == nil ? 3 : 4)
            if let notes {
                replies.bulk("notes")
                replies.bulk(notes)
            }
            replies.bulk("flags")
            replies.set(count: flags.count)
            for flag in flags { replies.simple(flag) }
            replies.bulk("begin_search")
            replies.map(count: 2)
            replies.bulk("type")
            replies.bulk("index")
            replies.bulk("spec")
            replies.map(count: 1)
            replies.bulk("index")
            replies.integer(index)
            replies.bulk("find_keys")
            replies.map(count: 2)
            replies.bulk("type")
            replies.bulk("range")
            replies.bulk("spec")
            replies.map(count: 3)
            replies.bulk("lastkey")
            replies.integer(last)
            replies.bulk("keystep")
            replies.integer(step)
            replies.bulk("limit")
            replies.integer(0)
        }
    }

    var keySpecifications: [KeySpecification] {
        let keys = shownKeys
        guard keys.first > 0, keys.step > 0 else { return [] }
        let access = keyAccess
        guard access.count == 2 else {
            return [
                KeySpecification(
                    notes: Self.keyNotes[name], flags: access[0], index: keys.first,
                    last: keys.last < 0 ? keys.last : keys.last - keys.first,
                    step: keys.step)
            ]
        }
        return [
            KeySpecification(notes: nil, flags: access[0], index: keys.first, last: 0, step: 1),
            KeySpecification(
                notes: nil, flags: access[1], index: keys.first + 1, last: keys.last < 0 ? -1 : 0, step: 1),
        ]
    }
}
