import LarderPlatform

extension Verb {
    static let shell = Verb(
        "shell", "[--keep-going]", "run commands interactively or from standard input, on one connection",
        details: """
            On a terminal, larderctl without arguments does the same. Each line is a command of the daemon. Quote
            arguments with spaces: "…" supports \\n, \\r, \\t, \\xHH, \\\\ and \\", '…' supports \\'. All lines use one
            connection, so SELECT, MULTI, WATCH, SNAPSHOT and CLIENT TRACKING apply to the following lines. exit or quit
            ends it.
            On a terminal: Tab completes commands, subcommands, databases, keys and options, or shows the syntax; help
            COMMAND explains one; Ctrl-C clears the line, or stops waiting; Ctrl-R searches the history, which is in
            $XDG_STATE_HOME/larder/history (~/.local/state/larder/history), without lines that contain passwords.
            Replies show their types. SUBSCRIBE and MONITOR run until Ctrl-C. AUTH sends the password. There is no time
            limit without --timeout. If the connection is lost, the next line reconnects, in the same database.
            Otherwise: replies are printed like those of single commands, null as an empty line; with --json as a line
            of JSON. An error ends it with exit code 1 and the line's number, unless --keep-going; then each line has
            one of JSON, for an error {"error":…}. A connection that is lost while waiting for a reply, in a
            transaction, with watched keys or a snapshot ends it with 3; otherwise it reconnects. Empty lines, and lines
            that start with #, are skipped, also on a terminal.
            """,
        options: [
            OptionSpec(
                "--keep-going", nil,
                "standard input: continue after errors, exit with 1 at the end; sends many commands at once")
        ]
    ) { arguments, context in
        guard isatty(STDIN_FILENO) == 1, isatty(STDOUT_FILENO) == 1 else {
            return try BatchShell(context, keepsGoing: arguments["--keep-going"] != nil).run()
        }
        var options = context.options
        if !options.hasTimeout { options.timeoutMilliseconds = 0 }
        return try InteractiveShell(Context(options: options, output: context.output)).run()
    }
}
