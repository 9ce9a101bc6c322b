/// Commands for scripts.
extension CommandMetadata {
    static let scripting: [CommandMetadata] = [
        .eval, .evalsha, .evalRO, .evalshaRO, .script, .fcall, .fcallRO, .function,
    ]

    static let scriptWritesNote =
        "We cannot tell how the keys will be used so we assume the worst, RW and UPDATE"
    static let scriptReadsNote = "We cannot tell how the keys will be used so we assume the worst, RO and ACCESS"
    private static let complexity = "that of the script"
    private static let reply = "what the script returns"

    package static let eval = CommandMetadata(
        "eval", arity: -3, [.noScript, .stale, .skipMonitor, .noMandatoryKeys, .runsScript], keys: .counted,
        group: .scripting, since: "2.6.0", complexity: complexity, syntax: "script numkeys [key ...] [arg ...]",
        summary: "Runs a script of Lua 5.1 on the entries of its keys, isolated from all other connections, as one "
            + "commit unit.", reply: reply, access: ["RW access update"], keyNotes: scriptWritesNote)

    package static let evalsha = CommandMetadata(
        "evalsha", arity: -3, [.noScript, .stale, .skipMonitor, .noMandatoryKeys, .runsScript], keys: .counted,
        group: .scripting, since: "2.6.0", complexity: complexity, syntax: "sha1 numkeys [key ...] [arg ...]",
        summary: "Runs a script that the server knows, by the SHA-1 of its text.", reply: reply,
        access: ["RW access update"])

    package static let evalRO = CommandMetadata(
        "eval_ro", arity: -3, [.noScript, .readonly, .stale, .skipMonitor, .noMandatoryKeys, .runsScript],
        keys: .counted, group: .scripting, since: "7.0.0", complexity: complexity,
        syntax: "script numkeys [key ...] [arg ...]", summary: "Runs a script that may only read.", reply: reply,
        access: ["RO access"], keyNotes: scriptReadsNote)

    package static let evalshaRO = CommandMetadata(
        "evalsha_ro", arity: -3, [.noScript, .readonly, .stale, .skipMonitor, .noMandatoryKeys, .runsScript],
        keys: .counted, group: .scripting, since: "7.0.0", complexity: complexity,
        syntax: "sha1 numkeys [key ...] [arg ...]",
        summary: "Runs a script that the server knows and that may only read, by the SHA-1 of its text.",
        reply: reply, access: ["RO access"])

    package static let script = CommandMetadata(
        "script", arity: -2, [], group: .scripting, since: "2.6.0", complexity: "that of the subcommand",
        summary: "Keeps scripts for EVALSHA, and ends those that run.", reply: "that of the subcommand",
        subcommands: [
            .help("script", group: .scripting), .scriptFlush, .scriptDebug, .scriptExists, .scriptKill, .scriptLoad,
        ])

    package static let scriptLoad = CommandMetadata(
        "script|load", arity: 3, [.noScript, .stale], group: .scripting, since: "2.6.0",
        complexity: "O(N) with N the length of the script", syntax: "script",
        summary: "Compiles a script and keeps it, without running it.", reply: "its SHA-1, 40 hexadecimal digits",
        tips: [.requestAllNodes, .responseAllSucceeded])

    package static let scriptExists = CommandMetadata(
        "script|exists", arity: -3, [.noScript], group: .scripting, since: "2.6.0",
        complexity: "O(N) with N the digests", syntax: "sha1 [sha1 ...]",
        summary: "Tells which scripts the server knows.", reply: "array of 1 or 0",
        tips: [.requestAllShards, .responseLogicalAnd])

    package static let scriptFlush = CommandMetadata(
        "script|flush", arity: -2, [.noScript, .affectsOthers], group: .scripting, since: "2.6.0",
        complexity: "O(N) with N the scripts", syntax: "[ASYNC | SYNC]", summary: "Forgets all scripts.", reply: "OK",
        tips: [.requestAllNodes, .responseAllSucceeded])

    package static let scriptKill = CommandMetadata(
        "script|kill", arity: 2, [.noScript, .allowBusy, .affectsOthers], group: .scripting, since: "2.6.0",
        summary: "Ends the scripts that have been running for more than some milliseconds; nothing of theirs is "
            + "applied.", reply: "OK; NOTBUSY when there is none", tips: [.requestAllShards, .responseOneSucceeded])

    package static let scriptDebug = CommandMetadata(
        "script|debug", arity: 3, [.noScript], group: .scripting, since: "3.2.0", syntax: "YES | SYNC | NO",
        summary: "NO is accepted; there is no debugger.", reply: "OK, or an error")
}
