/// Commands about scripts.
extension CommandMetadata {
    static let scripting: [CommandMetadata] = [
        .eval, .evalsha, .evalRO, .evalshaRO, .script, .fcall, .fcallRO, .function,
    ]

    static let scriptWritesNote =
        "We cannot tell how the keys will be used so we assume the worst, RW and UPDATE"
    static let scriptReadsNote = "We cannot tell how the keys will be used so we assume the worst, RO and ACCESS"
    private static let complexity = "that of the script"
    private static let reply = "the script's result"

    package static let eval = CommandMetadata(
        "eval", arity: -3, [.noScript, .stale, .skipMonitor, .noMandatoryKeys, .runsScript], keys: .counted,
        group: .scripting, since: "2.6.0", complexity: complexity, syntax: "script numkeys [key ...] [arg ...]",
        summary: "Runs a script of Lua 5.1 on the entries of its keys, isolated from all other connections, as one "
            + "commit unit.", reply: reply, access: ["RW access update"], keyNotes: scriptWritesNote)

    package static let evalsha = CommandMetadata(
        "evalsha", arity: -3, [.noScript, .stale, .skipMonitor, .noMandatoryKeys, .runsScript], keys: .counted,
        group: .scripting, since: "2.6.0", complexity: complexity, syntax: "sha1 numkeys [key ...] [arg ...]",
        summary: "Runs a cached script, by the SHA-1 of its source.", reply: reply, access: ["RW access update"])

    package static let evalRO = CommandMetadata(
        "eval_ro", arity: -3, [.noScript, .readonly, .stale, .skipMonitor, .noMandatoryKeys, .runsScript],
        keys: .counted, group: .scripting, since: "7.0.0", complexity: complexity,
        syntax: "script numkeys [key ...] [arg ...]", summary: "Runs a read-only script.", reply: reply,
        access: ["RO access"], keyNotes: scriptReadsNote)

    package static let evalshaRO = CommandMetadata(
        "evalsha_ro", arity: -3, [.noScript, .readonly, .stale, .skipMonitor, .noMandatoryKeys, .runsScript],
        keys: .counted, group: .scripting, since: "7.0.0", complexity: complexity,
        syntax: "sha1 numkeys [key ...] [arg ...]",
        summary: "Runs a cached read-only script, by the SHA-1 of its source.", reply: reply, access: ["RO access"])

    package static let script = CommandMetadata(
        "script", arity: -2, [], group: .scripting, since: "2.6.0", complexity: "that of the subcommand",
        summary: "Manages the scripts for EVALSHA, and kills running ones.", reply: "that of the subcommand",
        subcommands: [
            .help("script", group: .scripting), .scriptFlush, .scriptDebug, .scriptExists, .scriptKill, .scriptLoad,
        ])

    package static let scriptLoad = CommandMetadata(
        "script|load", arity: 3, [.noScript, .stale], group: .scripting, since: "2.6.0",
        complexity: "O(N) with N the length of the script", syntax: "script",
        summary: "Compiles and caches a script, without running it.", reply: "its SHA-1, 40 hexadecimal digits",
        tips: [.requestAllNodes, .responseAllSucceeded])

    package static let scriptExists = CommandMetadata(
        "script|exists", arity: -3, [.noScript], group: .scripting, since: "2.6.0",
        complexity: "O(N) with N the digests", syntax: "sha1 [sha1 ...]",
        summary: "Checks which scripts are cached.", reply: "array of 1 or 0",
        tips: [.requestAllShards, .responseLogicalAnd])

    package static let scriptFlush = CommandMetadata(
        "script|flush", arity: -2, [.noScript, .affectsOthers], group: .scripting, since: "2.6.0",
        complexity: "O(N) with N the scripts", syntax: "[ASYNC | SYNC]", summary: "Removes all scripts.", reply: "OK",
        tips: [.requestAllNodes, .responseAllSucceeded])

    package static let scriptKill = CommandMetadata(
        "script|kill", arity: 2, [.noScript, .allowBusy, .affectsOthers], group: .scripting, since: "2.6.0",
        summary: "Kills the scripts that have been running for some milliseconds; their changes are not "
            + "applied.", reply: "OK; NOTBUSY when there is none", tips: [.requestAllShards, .responseOneSucceeded])

    package static let scriptDebug = CommandMetadata(
        "script|debug", arity: 3, [.noScript], group: .scripting, since: "3.2.0", syntax: "YES | SYNC | NO",
        summary: "Accepts only NO: there is no debugger.", reply: "OK, or an error")
}
