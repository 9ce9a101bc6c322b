/// Commands about functions: named scripts in libraries.
extension CommandMetadata {
    package static let fcall = CommandMetadata(
        "fcall", arity: -3, [.noScript, .stale, .skipMonitor, .noMandatoryKeys, .runsScript], keys: .counted,
        group: .scripting, since: "7.0.0", complexity: "that of the function",
        syntax: "function numkeys [key ...] [arg ...]",
        summary: "Runs a function of a library, as EVAL runs a script.", reply: "the function's result",
        access: ["RW access update"], keyNotes: scriptWritesNote)

    package static let fcallRO = CommandMetadata(
        "fcall_ro", arity: -3, [.noScript, .readonly, .stale, .skipMonitor, .noMandatoryKeys, .runsScript],
        keys: .counted, group: .scripting, since: "7.0.0", complexity: "that of the function",
        syntax: "function numkeys [key ...] [arg ...]",
        summary: "Runs a function with the flag no-writes.", reply: "the function's result",
        access: ["RO access"], keyNotes: scriptReadsNote)

    package static let function = CommandMetadata(
        "function", arity: -2, [], group: .scripting, since: "7.0.0", complexity: "that of the subcommand",
        summary: "Manages the function libraries for FCALL.", reply: "that of the subcommand",
        subcommands: [
            .functionLoad, .functionDelete, .functionFlush, .functionKill, .functionList, .functionStats,
            .functionDump, .functionRestore, .help("function", group: .scripting, since: "7.0.0"),
        ])

    private static let ofFunction = CommandFamily("function|", group: .scripting, since: "7.0.0")
    package static let functionLoad = ofFunction.row(
        "load", -3, flags: [.write, .denyOOM, .noScript, .wholeDatabase],
        complexity: "O(N) with N the length of all libraries", syntax: "[REPLACE] library",
        "Runs a library, which registers its functions, and stores it durably.", reply: "the library's name",
        tips: [.requestAllShards, .responseAllSucceeded])
    package static let functionDelete = ofFunction.row(
        "delete", 3, flags: [.write, .noScript, .wholeDatabase], complexity: "O(N) with N the length of all libraries",
        syntax: "name", "Removes a library.", reply: "OK", tips: [.requestAllShards, .responseAllSucceeded])
    package static let functionFlush = ofFunction.row(
        "flush", -2, flags: [.write, .noScript, .wholeDatabase], complexity: "O(N) with N the libraries",
        syntax: "[ASYNC | SYNC]", "Removes all libraries.", reply: "OK",
        tips: [.requestAllShards, .responseAllSucceeded])
    package static let functionKill = ofFunction.row(
        "kill", 2, flags: [.noScript, .allowBusy, .affectsOthers],
        "Kills the functions that have been running for some milliseconds; their changes are not applied.",
        reply: "OK; NOTBUSY when there is none", tips: [.requestAllShards, .responseOneSucceeded])
    package static let functionList = ofFunction.row(
        "list", -2, flags: [.noScript], complexity: "O(N) with N the functions",
        syntax: "[LIBRARYNAME pattern] [WITHCODE]", "Describes libraries and their functions.",
        reply: "array of maps: `library_name`, `engine`, `functions` (each `name`, `description`, `flags`), "
            + "`library_code`", tips: [.outputOrder])
    package static let functionStats = ofFunction.row(
        "stats", 2, flags: [.noScript, .allowBusy, .affectsOthers],
        "Shows the function that has been running longest, "
            + "if for some milliseconds, and the numbers of libraries and functions.",
        reply: "map: `running_script` (`name`, `command`, `duration_ms`, or null), `engines`",
        tips: [.output, .requestAllShards, .responseSpecial])
    package static let functionDump = ofFunction.row(
        "dump", 2, flags: [.noScript], complexity: "O(N) with N the length of all libraries",
        "Returns all libraries in the format of FUNCTION RESTORE, here and in Redis.", reply: "bytes")
    package static let functionRestore = ofFunction.row(
        "restore", -3, flags: [.write, .denyOOM, .noScript, .wholeDatabase],
        complexity: "O(N) with N the length of all libraries", syntax: "payload [FLUSH | APPEND | REPLACE]",
        "Adds the libraries of a payload. FLUSH first removes all others, REPLACE those with the same names; otherwise "
            + "a library with the same name is an error.", reply: "OK",
        tips: [.requestAllShards, .responseAllSucceeded])
}
