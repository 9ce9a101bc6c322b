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

    private static let ofCommand = CommandFamily(
        "command|", flags: [.loading, .stale], group: .server, complexity: "O(N) with N the commands",
        reply: "as in Redis", category: "connection")
    package static let commandCount = ofCommand.row("count", 2, since: "2.8.13", "Returns the number of commands.")
    package static let commandList = ofCommand.row(
        "list", -2, since: "7.0.0", syntax: "[FILTERBY ACLCAT category|PATTERN pattern|MODULE name]",
        "Lists the names of the commands.", tips: [.outputOrder])
    package static let commandInfo = ofCommand.row(
        "info", -2, since: "2.8.13", syntax: "[name ...]", "Describes commands for client libraries.",
        tips: [.outputOrder])
    package static let commandDocs = ofCommand.row(
        "docs", -2, since: "7.0.0", syntax: "[name ...]", "Documents commands.", tips: [.outputOrder])
    package static let commandGetkeys = ofCommand.row(
        "getkeys", -4, since: "2.8.13", syntax: "command [argument ...]", "Returns the keys of a call.",
        secrets: .ofCall(from: 2))
    package static let commandGetkeysandflags = ofCommand.row(
        "getkeysandflags", -4, since: "7.0.0", syntax: "command [argument ...]",
        "Returns the keys of a call, and how the call uses each.", secrets: .ofCall(from: 2))

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

    private static let ofSlowlog = CommandFamily(
        "slowlog|", flags: [.admin, .loading, .stale], group: .server, since: "2.2.12", complexity: "O(N)",
        reply: "as in Redis")
    package static let slowlogGet = ofSlowlog.row(
        "get", -2, syntax: "[count]", "Returns the newest entries: 10 by default, -1 for all.",
        tips: [.requestAllNodes, .output])
    package static let slowlogLen = ofSlowlog.row(
        "len", 2, "Returns the number of entries.", tips: [.requestAllNodes, .responseSum, .output])
    package static let slowlogReset = ofSlowlog.row(
        "reset", 2, "Removes all entries.", tips: [.requestAllNodes, .responseAllSucceeded])

    package static let latency = CommandMetadata(
        "latency", arity: -2, [], group: .server, since: "2.8.13", complexity: "O(N)",
        syntax: "LATEST | HISTORY event | RESET [event ...] | GRAPH event | DOCTOR | HISTOGRAM [command ...] | HELP",
        summary: "Shows events longer than `latency-monitor-threshold`, and the latencies of commands.",
        reply: "depends on the subcommand",
        subcommands: [
            .latencyLatest, .latencyHistory, .latencyReset, .latencyGraph, .latencyDoctor, .latencyHistogram,
            .help("latency", group: .server, since: "2.8.13"),
        ])

    private static let ofLatency = CommandFamily(
        "latency|", flags: [.admin, .loading, .stale, .noScript], group: .server, since: "2.8.13", complexity: "O(N)",
        reply: "as in Redis", tips: [.output, .requestAllNodes, .responseSpecial])
    package static let latencyLatest = ofLatency.row(
        "latest", 2, "Returns the newest and the longest sample of each event.")
    package static let latencyHistory = ofLatency.row("history", 3, syntax: "event", "Returns the samples of an event.")
    package static let latencyReset = ofLatency.row(
        "reset", -2, syntax: "[event ...]", "Removes the samples of events; without arguments, of all.",
        tips: [.requestAllNodes, .responseAllSucceeded])
    package static let latencyGraph = ofLatency.row("graph", 3, syntax: "event", "Draws the samples of an event.")
    package static let latencyDoctor = ofLatency.row("doctor", 2, "Describes the events in sentences.")
    package static let latencyHistogram = ofLatency.row(
        "histogram", -2, since: "7.0.0", syntax: "[command ...]",
        "Returns latency histograms of commands, in microseconds.")

    package static let config = CommandMetadata(
        "config", arity: -2, [], group: .server, since: "2.0.0", complexity: "O(N) with N the settings",
        syntax: "GET pattern [pattern ...] | SET name value [name value ...] | RESETSTAT | REWRITE | HELP",
        summary: "Shows and changes settings.", reply: "GET: map; the others OK",
        subcommands: [.configGet, .configSet, .configResetstat, .configRewrite, .help("config", group: .server)])

    private static let ofConfig = CommandFamily(
        "config|", flags: [.admin, .loading, .stale, .noScript, .status], group: .server, since: "2.0.0",
        complexity: "O(N) with N the settings")
    package static let configGet = ofConfig.row(
        "get", -3, syntax: "pattern [pattern ...]", "Returns the settings whose names match.", reply: "map")
    package static let configSet = ofConfig.row(
        "set", -4, syntax: "name value [name value ...]", "Changes settings until the daemon stops, all or none.",
        reply: "OK", tips: [.requestAllNodes, .responseAllSucceeded], secrets: .ofSecretSettings)
    package static let configResetstat = ofConfig.row("resetstat", 2, "Resets the counters of INFO.", reply: "OK")
    package static let configRewrite = ofConfig.row(
        "rewrite", 2, since: "2.8.0", "Fails: larderd never writes its configuration file.", reply: "error")
}

/// Commands that show the access rules. Only larderd's options can change these rules.
extension CommandMetadata {
    private static let shown: CommandFlags = [.loading, .stale, .noScript]

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

    private static let ofACL = CommandFamily(
        "acl|", flags: [.admin, .loading, .stale, .noScript], group: .server, since: "6.0.0")
    package static let aclWhoami = ofACL.row(
        "whoami", 2, flags: shown, "Returns the name of the connection's user; `default` without access rules.",
        reply: "bulk")
    package static let aclList = ofACL.row(
        "list", 2, complexity: "O(N) with N the rules",
        "Lists users and groups with their rights, in Redis' form; rights in one database are in parentheses.",
        reply: "array of lines")
    package static let aclUsers = ofACL.row(
        "users", 2, complexity: "O(N) with N the rules", "Lists the names of users with rights.",
        reply: "array of bulk")
    package static let aclGetuser = ofACL.row(
        "getuser", 3, complexity: "O(N) with N the rules", syntax: "user",
        "Returns the rights of a user, including those of its groups.",
        reply: "map of flags, passwords, commands, "
            + "keys, channels and selectors, as in Redis; a selector includes its database; null for a user that the "
            + "system does not know")
    package static let aclCat = ofACL.row(
        "cat", -2, flags: shown, complexity: "O(N) with N the commands", syntax: "[category]",
        "Lists the categories of commands, or the commands of one category.", reply: "array of bulk")
    package static let aclLog = ofACL.row(
        "log", -2, complexity: "O(N) with N the entries", syntax: "[count|RESET]",
        "Returns the last refusals, 10 by default, or removes them.", reply: "array of maps, as in Redis; OK")
    package static let aclDryrun = ofACL.row(
        "dryrun", -4, since: "7.0.0", syntax: "user command [argument ...]",
        "Checks whether a user may run a command in the current database, without running it.",
        reply: "OK, or the reason for the refusal", secrets: .ofCall(from: 3))
    package static let aclGenpass = ofACL.row(
        "genpass", -2, flags: shown, syntax: "[bits]", "Returns a random password, of 256 bits by default.",
        reply: "bulk: hexadecimal digits")
    package static let aclSetuser = ofACL.row(
        "setuser", -3, complexity: "O(N)", syntax: "user [rule ...]", "Fails: only options of larderd give rights.",
        reply: "error", secrets: .from(2))
    package static let aclDeluser = ofACL.row(
        "deluser", -3, syntax: "user [user ...]", "Fails: only options of larderd give rights.", reply: "error")
    package static let aclLoad = ofACL.row(
        "load", 2, "Fails: there is no file of users. SIGHUP reloads larderd's configuration file.", reply: "error")
    package static let aclSave = ofACL.row("save", 2, "Fails: there is no file of users.", reply: "error")
}
