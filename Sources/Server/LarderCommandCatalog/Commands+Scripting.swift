/// Commands about scripts.
extension CommandMetadata {
    static let scripting: [CommandMetadata] = [
        .eval, .evalsha, .evalRO, .evalshaRO, .script, .fcall, .fcallRO, .function,
    ]

    static let scriptWritesNote = "We cannot tell how the keys will be used so we assume the worst, RW and UPDATE"
    static let scriptReadsNote = "We cannot tell how the keys will be used so we assume the worst, RO and ACCESS"

    private static let scripts = CommandFamily(
        "", flags: [.noScript, .stale, .skipMonitor, .noMandatoryKeys, .runsScript], keys: .counted, group: .scripting,
        since: "2.6.0", complexity: "that of the script", reply: "the script's result")
    package static let eval = scripts.row(
        "eval", -3, syntax: "script numkeys [key ...] [arg ...]",
        "Runs a script of Lua 5.1 on the entries of its keys, isolated from all other connections, as one commit unit.",
        access: ["RW access update"], keyNotes: scriptWritesNote)
    package static let evalsha = scripts.row(
        "evalsha", -3, syntax: "sha1 numkeys [key ...] [arg ...]", "Runs a cached script, by the SHA-1 of its source.",
        access: ["RW access update"])
    package static let evalRO = scripts.row(
        "eval_ro", -3, flags: [.noScript, .readonly, .stale, .skipMonitor, .noMandatoryKeys, .runsScript],
        since: "7.0.0", syntax: "script numkeys [key ...] [arg ...]", "Runs a read-only script.", access: ["RO access"],
        keyNotes: scriptReadsNote)
    package static let evalshaRO = scripts.row(
        "evalsha_ro", -3, flags: [.noScript, .readonly, .stale, .skipMonitor, .noMandatoryKeys, .runsScript],
        since: "7.0.0", syntax: "sha1 numkeys [key ...] [arg ...]",
        "Runs a cached read-only script, by the SHA-1 of its source.", access: ["RO access"])

    package static let script = CommandMetadata(
        "script", arity: -2, [], group: .scripting, since: "2.6.0", complexity: "that of the subcommand",
        summary: "Manages the scripts for EVALSHA, and kills running ones.", reply: "that of the subcommand",
        subcommands: [
            .help("script", group: .scripting), .scriptFlush, .scriptDebug, .scriptExists, .scriptKill, .scriptLoad,
        ])

    private static let ofScript = CommandFamily("script|", flags: [.noScript], group: .scripting, since: "2.6.0")
    package static let scriptLoad = ofScript.row(
        "load", 3, flags: [.noScript, .stale], complexity: "O(N) with N the length of the script", syntax: "script",
        "Compiles and caches a script, without running it.", reply: "its SHA-1, 40 hexadecimal digits",
        tips: [.requestAllNodes, .responseAllSucceeded])
    package static let scriptExists = ofScript.row(
        "exists", -3, complexity: "O(N) with N the digests", syntax: "sha1 [sha1 ...]",
        "Checks which scripts are cached.", reply: "array of 1 or 0", tips: [.requestAllShards, .responseLogicalAnd])
    package static let scriptFlush = ofScript.row(
        "flush", -2, flags: [.noScript, .affectsOthers], complexity: "O(N) with N the scripts",
        syntax: "[ASYNC | SYNC]", "Removes all scripts.", reply: "OK", tips: [.requestAllNodes, .responseAllSucceeded])
    package static let scriptKill = ofScript.row(
        "kill", 2, flags: [.noScript, .allowBusy, .affectsOthers],
        "Kills the scripts that have been running for some milliseconds; their changes are not applied.",
        reply: "OK; NOTBUSY when there is none", tips: [.requestAllShards, .responseOneSucceeded])
    package static let scriptDebug = ofScript.row(
        "debug", 3, since: "3.2.0", syntax: "YES | SYNC | NO", "Accepts only NO: there is no debugger.",
        reply: "OK, or an error")
}
