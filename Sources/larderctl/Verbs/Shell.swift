import LarderPlatform

extension Verb {
    static let shell = Verb(
        name: "shell", synopsis: "[--keep-going]",
        summary: "type commands, or run those of standard input, on one connection",
        details: """
            Without words larderctl does the same, on a terminal. A line is a command of the daemon. Words with blanks stand in
            quotes: "…" knows \\n, \\r, \\t, \\xHH, \\\\ and \\", '…' knows \\'. One connection runs them all, so that SELECT, MULTI, WATCH,
            SNAPSHOT and CLIENT TRACKING hold for the lines that follow. exit or quit ends it.
            On a terminal: Tab completes commands, subcommands, databases, keys and options, or shows the syntax; help COMMAND
            explains one; Ctrl-C clears the line, or ends what is waited for; Ctrl-R searches the history, which is in
            $XDG_STATE_HOME/larder/history (~/.local/state/larder/history), without lines that have passwords. Replies show their
            types. SUBSCRIBE and MONITOR go on until Ctrl-C. AUTH says the password of a daemon that asks for one. There is no time limit, unless --timeout sets one. After a loss of the
            connection the next line connects again, in the same database.
            Otherwise: replies as of single commands, an empty line for null, with --json a line of JSON each. An error ends it with
            exit code 1 and the line's number, unless --keep-going; then each line has one of JSON, for an error {"error":…}. A
            connection that is lost while a reply is waited for, or in a transaction, while keys are watched or with a snapshot,
            ends it with 3; lost between two lines, it is made again. Empty lines, and those that begin with #, are skipped, on a
            terminal too.
            """,
        options: [
            OptionSpec(
                name: "--keep-going", value: nil,
                summary: "standard input: go on after errors, and exit with 1 at the end; sends many commands at once")
        ],
        argumentCount: 0...0
    ) { arguments, context in
        guard isatty(STDIN_FILENO) == 1, isatty(STDOUT_FILENO) == 1 else {
            return try BatchShell(context, keepsGoing: arguments.options["--keep-going"] != nil).run()
        }
        var options = context.options
        if !options.hasTimeout { options.timeoutMilliseconds = 0 }
        return try InteractiveShell(Context(options: options, output: context.output)).run()
    }
}
