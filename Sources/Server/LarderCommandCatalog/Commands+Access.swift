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
