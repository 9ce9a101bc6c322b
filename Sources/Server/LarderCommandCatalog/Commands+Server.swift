/// Commands about the whole daemon.
extension CommandMetadata {
    static let server: [CommandMetadata] = [
        .command, .info, .flushdb, .flushall, .shutdown, .time, .lastsave, .save, .bgsave, .bgrewriteaof, .wait, .role,
        .debug, .monitor, .slowlog, .latency, .config, .acl,
    ]

    package static let command = CommandMetadata(
        "command", arity: -1, [.loading, .stale], group: .server, since: "2.8.13",
        complexity: "O(N) with N the commands",
        syntax: "[COUNT | LIST [FILTERBY ACLCAT category|PATTERN pattern|MODULE name] | INFO [name ...] | DOCS "
            + "[name ...] | GETKEYS command [argument ...] | GETKEYSANDFLAGS command [argument ...] | HELP]",
        summary: "Describes the commands.", reply: "array or map as in Redis", category: "connection",
        tips: [.outputOrder],
        subcommands: [
            .commandCount, .commandList, .commandInfo, .commandDocs, .commandGetkeys, .commandGetkeysandflags,
            .help("command", group: .server, category: "connection"),
        ])

    package static let commandCount = CommandMetadata(
        "command|count", arity: 2, [.loading, .stale], group: .server, since: "2.8.13",
        complexity: "O(N) with N the commands", summary: "Returns the number of commands.", reply: "as in Redis",
        category: "connection")

    package static let commandList = CommandMetadata(
        "command|list", arity: -2, [.loading, .stale], group: .server, since: "7.0.0",
        complexity: "O(N) with N the commands", syntax: "[FILTERBY ACLCAT category|PATTERN pattern|MODULE name]",
        summary: "Lists the names of the commands.", reply: "as in Redis", category: "connection", tips: [.outputOrder])

    package static let commandInfo = CommandMetadata(
        "command|info", arity: -2, [.loading, .stale], group: .server, since: "2.8.13",
        complexity: "O(N) with N the commands", syntax: "[name ...]",
        summary: "Describes commands for client libraries.", reply: "as in Redis",
        category: "connection", tips: [.outputOrder])

    package static let commandDocs = CommandMetadata(
        "command|docs", arity: -2, [.loading, .stale], group: .server, since: "7.0.0",
        complexity: "O(N) with N the commands", syntax: "[name ...]", summary: "Documents commands.",
        reply: "as in Redis", category: "connection", tips: [.outputOrder])

    package static let commandGetkeys = CommandMetadata(
        "command|getkeys", arity: -4, [.loading, .stale], group: .server, since: "2.8.13",
        complexity: "O(N) with N the commands", syntax: "command [argument ...]",
        summary: "Returns the keys of a call.", reply: "as in Redis", category: "connection", secrets: .ofCall(from: 2))

    package static let commandGetkeysandflags = CommandMetadata(
        "command|getkeysandflags", arity: -4, [.loading, .stale], group: .server, since: "7.0.0",
        complexity: "O(N) with N the commands", syntax: "command [argument ...]",
        summary: "Returns the keys of a call, and how the call uses each.", reply: "as in Redis",
        category: "connection", secrets: .ofCall(from: 2))

    package static let info = CommandMetadata(
        "info", arity: -1, [.loading, .stale, .status, .dangerous], group: .server, since: "1.0.0",
        complexity: "O(1); entries are counted in the background, many of them at most once a minute",
        syntax: "[section ...]", summary: "Describes the daemon, in Redis' format.", reply: "text",
        tips: [.output, .requestAllShards, .responseSpecial], textForm: .sections)

    package static let flushdb = CommandMetadata(
        "flushdb", arity: -1, [.write, .wholeDatabase, .dangerous], group: .server, since: "1.0.0",
        syntax: "[ASYNC | SYNC]", summary: "Empties the current database at once; its policy is kept.", reply: "OK",
        category: "keyspace", tips: [.requestAllShards, .responseAllSucceeded])

    package static let flushall = CommandMetadata(
        "flushall", arity: -1, [.write, .wholeDatabase, .dangerous], group: .server, since: "1.0.0",
        syntax: "[ASYNC | SYNC]", summary: "Empties all databases, one at a time; their policies are kept.",
        reply: "OK", category: "keyspace", tips: [.requestAllShards, .responseAllSucceeded], database: .all)

    package static let shutdown = CommandMetadata(
        "shutdown", arity: -1, [.admin, .loading, .stale, .noMulti, .noScript, .allowBusy], group: .server,
        since: "1.0.0", syntax: "[NOSAVE | SAVE] [NOW] [FORCE]",
        summary: "Stops the daemon after completing received requests, with a commit and a sync.",
        reply: "none: the connection closes", effect: .endsDaemon)

    package static let time = CommandMetadata(
        "time", arity: 1, [.fast, .loading, .stale], group: .server, since: "2.6.0", summary: "Returns the time.",
        reply: "array of seconds and microseconds", tips: [.output])

    package static let lastsave = CommandMetadata(
        "lastsave", arity: 1, [.fast, .loading, .stale, .administrative], group: .server, since: "1.0.0",
        summary: "Returns when SAVE or BGSAVE last succeeded, or when the daemon started, in seconds since 1970.",
        reply: "integer", tips: [.output])

    package static let save = CommandMetadata(
        "save", arity: 1, [.admin, .noMulti, .noScript, .noAsyncLoading], group: .server, since: "1.0.0",
        summary: "Writes all committed entries into the databases and syncs them to the disk.", reply: "OK")

    package static let bgsave = CommandMetadata(
        "bgsave", arity: -1, [.admin, .noScript, .noAsyncLoading], group: .server, since: "1.0.0", syntax: "[SCHEDULE]",
        summary: "Starts SAVE in the background.", reply: "a line of text")

    package static let bgrewriteaof = CommandMetadata(
        "bgrewriteaof", arity: 1, [.admin, .noScript, .noAsyncLoading], group: .server, since: "1.0.0",
        summary: "Starts SAVE in the background, and then truncates the journal.", reply: "a line of text")

    package static let wait = CommandMetadata(
        "wait", arity: 3, [.noScript], group: .generic, since: "3.0.0", syntax: "replicas milliseconds",
        summary: "Returns 0 at once: there are no replicas, and every reply already confirms that the write is "
            + "committed.", reply: "integer 0",
        category: "connection", tips: [.requestAllShards, .responseMinimum])

    package static let role = CommandMetadata(
        "role", arity: 1, [.fast, .loading, .stale, .noScript, .administrative], group: .server, since: "2.8.12",
        summary: "Returns the role: always master.", reply: "array of `master`, 0 and no replicas")

    package static let debug = CommandMetadata(
        "debug", arity: -2, [.admin, .loading, .stale, .noScript, .systemCommand], group: .server, since: "1.0.0",
        syntax: "SLEEP seconds | HELP", summary: "For tests, with --enable-debug: SLEEP makes this connection wait.",
        reply: "OK")

    package static let monitor = CommandMetadata(
        "monitor", arity: 1, [.admin, .loading, .stale, .noScript], group: .server, since: "1.0.0",
        summary: "Shows every command that the daemon runs, until RESET or the connection is closed.",
        reply: "OK, then a line for each command", effect: .streams)

    package static let slowlog = CommandMetadata(
        "slowlog", arity: -2, [], group: .server, since: "2.2.12", complexity: "O(N)",
        syntax: "GET [count] | LEN | RESET | HELP", summary: "Shows slow commands.", reply: "depends on the subcommand",
        subcommands: [.slowlogGet, .slowlogLen, .slowlogReset, .help("slowlog", group: .server, since: "6.2.0")])

    package static let slowlogGet = CommandMetadata(
        "slowlog|get", arity: -2, [.admin, .loading, .stale], group: .server, since: "2.2.12", complexity: "O(N)",
        syntax: "[count]", summary: "Returns the newest entries: 10 by default, -1 for all.", reply: "as in Redis",
        tips: [.requestAllNodes, .output])

    package static let slowlogLen = CommandMetadata(
        "slowlog|len", arity: 2, [.admin, .loading, .stale], group: .server, since: "2.2.12", complexity: "O(N)",
        summary: "Returns the number of entries.", reply: "as in Redis",
        tips: [.requestAllNodes, .responseSum, .output])

    package static let slowlogReset = CommandMetadata(
        "slowlog|reset", arity: 2, [.admin, .loading, .stale], group: .server, since: "2.2.12", complexity: "O(N)",
        summary: "Removes all entries.", reply: "as in Redis", tips: [.requestAllNodes, .responseAllSucceeded])

    package static let latency = CommandMetadata(
        "latency", arity: -2, [], group: .server, since: "2.8.13", complexity: "O(N)",
        syntax: "LATEST | HISTORY event | RESET [event ...] | GRAPH event | DOCTOR | HISTOGRAM [command ...] | HELP",
        summary: "Shows events longer than `latency-monitor-threshold`, and the latencies of commands.",
        reply: "depends on the subcommand",
        subcommands: [
            .latencyLatest, .latencyHistory, .latencyReset, .latencyGraph, .latencyDoctor, .latencyHistogram,
            .help("latency", group: .server, since: "2.8.13"),
        ])

    package static let latencyLatest = CommandMetadata(
        "latency|latest", arity: 2, [.admin, .loading, .stale, .noScript], group: .server, since: "2.8.13",
        complexity: "O(N)", summary: "Returns the newest and the longest sample of each event.", reply: "as in Redis",
        tips: [.output, .requestAllNodes, .responseSpecial])

    package static let latencyHistory = CommandMetadata(
        "latency|history", arity: 3, [.admin, .loading, .stale, .noScript], group: .server, since: "2.8.13",
        complexity: "O(N)", syntax: "event", summary: "Returns the samples of an event.", reply: "as in Redis",
        tips: [.output, .requestAllNodes, .responseSpecial])

    package static let latencyReset = CommandMetadata(
        "latency|reset", arity: -2, [.admin, .loading, .stale, .noScript], group: .server, since: "2.8.13",
        complexity: "O(N)", syntax: "[event ...]", summary: "Removes the samples of events; without arguments, of all.",
        reply: "as in Redis", tips: [.requestAllNodes, .responseAllSucceeded])

    package static let latencyGraph = CommandMetadata(
        "latency|graph", arity: 3, [.admin, .loading, .stale, .noScript], group: .server, since: "2.8.13",
        complexity: "O(N)", syntax: "event", summary: "Draws the samples of an event.", reply: "as in Redis",
        tips: [.output, .requestAllNodes, .responseSpecial])

    package static let latencyDoctor = CommandMetadata(
        "latency|doctor", arity: 2, [.admin, .loading, .stale, .noScript], group: .server, since: "2.8.13",
        complexity: "O(N)", summary: "Describes the events in sentences.", reply: "as in Redis",
        tips: [.output, .requestAllNodes, .responseSpecial])

    package static let latencyHistogram = CommandMetadata(
        "latency|histogram", arity: -2, [.admin, .loading, .stale, .noScript], group: .server, since: "7.0.0",
        complexity: "O(N)", syntax: "[command ...]",
        summary: "Returns latency histograms of commands, in microseconds.",
        reply: "as in Redis", tips: [.output, .requestAllNodes, .responseSpecial])

    package static let config = CommandMetadata(
        "config", arity: -2, [], group: .server, since: "2.0.0", complexity: "O(N) with N the settings",
        syntax: "GET pattern [pattern ...] | SET name value [name value ...] | RESETSTAT | REWRITE | HELP",
        summary: "Shows and changes settings.", reply: "GET: map; the others OK",
        subcommands: [.configGet, .configSet, .configResetstat, .configRewrite, .help("config", group: .server)])

    package static let configGet = CommandMetadata(
        "config|get", arity: -3, [.admin, .loading, .stale, .noScript, .status], group: .server, since: "2.0.0",
        complexity: "O(N) with N the settings", syntax: "pattern [pattern ...]",
        summary: "Returns the settings whose names match.", reply: "map")

    package static let configSet = CommandMetadata(
        "config|set", arity: -4, [.admin, .loading, .stale, .noScript, .status], group: .server, since: "2.0.0",
        complexity: "O(N) with N the settings", syntax: "name value [name value ...]",
        summary: "Changes settings until the daemon stops, all or none.", reply: "OK",
        tips: [.requestAllNodes, .responseAllSucceeded], secrets: .ofSecretSettings)

    package static let configResetstat = CommandMetadata(
        "config|resetstat", arity: 2, [.admin, .loading, .stale, .noScript, .status], group: .server, since: "2.0.0",
        complexity: "O(N) with N the settings", summary: "Resets the counters of INFO.", reply: "OK")

    package static let configRewrite = CommandMetadata(
        "config|rewrite", arity: 2, [.admin, .loading, .stale, .noScript, .status], group: .server, since: "2.8.0",
        complexity: "O(N) with N the settings", summary: "Fails: larderd never writes its configuration file.",
        reply: "error")
}

/// Commands that show the access rules. Only larderd's options can change these rules.
extension CommandMetadata {
    private static let shown: CommandFlags = [.loading, .stale, .noScript]
    private static let administers: CommandFlags = [.admin, .loading, .stale, .noScript]

    package static let acl = CommandMetadata(
        "acl", arity: -2, [], group: .server, since: "6.0.0", complexity: "that of the subcommand",
        syntax: "WHOAMI | LIST | USERS | GETUSER user | CAT [category] | LOG [count|RESET] | DRYRUN user command "
            + "[argument ...] | GENPASS [bits] | HELP",
        summary: "Shows access rules: users are those of the system; options of larderd give them rights.",
        reply: "that of the subcommand",
        subcommands: [
            .aclWhoami, .aclList, .aclUsers, .aclGetuser, .aclCat, .aclLog, .aclDryrun, .aclGenpass, .aclSetuser,
            .aclDeluser, .aclLoad, .aclSave, .help("acl", group: .server, since: "6.0.0"),
        ])

    package static let aclWhoami = CommandMetadata(
        "acl|whoami", arity: 2, shown, group: .server, since: "6.0.0",
        summary: "Returns the name of the connection's user; `default` without access rules.", reply: "bulk")

    package static let aclList = CommandMetadata(
        "acl|list", arity: 2, administers, group: .server, since: "6.0.0", complexity: "O(N) with N the rules",
        summary: "Lists users and groups with their rights, in Redis' form; rights in one database are in parentheses.",
        reply: "array of lines")

    package static let aclUsers = CommandMetadata(
        "acl|users", arity: 2, administers, group: .server, since: "6.0.0", complexity: "O(N) with N the rules",
        summary: "Lists the names of users with rights.", reply: "array of bulk")

    package static let aclGetuser = CommandMetadata(
        "acl|getuser", arity: 3, administers, group: .server, since: "6.0.0", complexity: "O(N) with N the rules",
        syntax: "user", summary: "Returns the rights of a user, including those of its groups.",
        reply: "map of flags, passwords, commands, keys, channels and selectors, as in Redis; a selector includes its "
            + "database; null for a user that the system does not know")

    package static let aclCat = CommandMetadata(
        "acl|cat", arity: -2, shown, group: .server, since: "6.0.0", complexity: "O(N) with N the commands",
        syntax: "[category]", summary: "Lists the categories of commands, or the commands of one category.",
        reply: "array of bulk")

    package static let aclLog = CommandMetadata(
        "acl|log", arity: -2, administers, group: .server, since: "6.0.0", complexity: "O(N) with N the entries",
        syntax: "[count|RESET]", summary: "Returns the last refusals, 10 by default, or removes them.",
        reply: "array of maps, as in Redis; OK")

    package static let aclDryrun = CommandMetadata(
        "acl|dryrun", arity: -4, administers, group: .server, since: "7.0.0",
        syntax: "user command [argument ...]",
        summary: "Checks whether a user may run a command in the current database, without running it.",
        reply: "OK, or the reason for the refusal", secrets: .ofCall(from: 3))

    package static let aclGenpass = CommandMetadata(
        "acl|genpass", arity: -2, shown, group: .server, since: "6.0.0", syntax: "[bits]",
        summary: "Returns a random password, of 256 bits by default.", reply: "bulk: hexadecimal digits")

    package static let aclSetuser = CommandMetadata(
        "acl|setuser", arity: -3, administers, group: .server, since: "6.0.0", complexity: "O(N)",
        syntax: "user [rule ...]", summary: "Fails: only options of larderd give rights.", reply: "error",
        secrets: .from(2))

    package static let aclDeluser = CommandMetadata(
        "acl|deluser", arity: -3, administers, group: .server, since: "6.0.0", syntax: "user [user ...]",
        summary: "Fails: only options of larderd give rights.", reply: "error", tips: [])

    package static let aclLoad = CommandMetadata(
        "acl|load", arity: 2, administers, group: .server, since: "6.0.0",
        summary: "Fails: there is no file of users. SIGHUP reloads larderd's configuration file.", reply: "error")

    package static let aclSave = CommandMetadata(
        "acl|save", arity: 2, administers, group: .server, since: "6.0.0", summary: "Fails: there is no file of users.",
        reply: "error", tips: [])
}
