import LarderClient

/// What a verb needs to run: the options and the output.
struct Context {
    let options: Options
    let output: Output

    init(options: Options, output: Output) {
        self.options = options
        self.output = output
        output.isRaw = options.isRaw
    }

    /// Connects to the daemon given by the options.
    /// - Parameter waitingMilliseconds: how much longer than the timeout to wait for replies.
    func connect(waitingMilliseconds: Int64 = 0) throws -> BlockingLarderClient {
        try options.connect(waitingMilliseconds: waitingMilliseconds)
    }

    /// Writes a result: as JSON with `--json`, otherwise as a line of text.
    func show(_ json: @autoclosure () -> JSONText, text: @autoclosure () -> String) {
        if options.json { output.json(json()) } else { output.line(text()) }
    }
}

extension Options {
    /// Like ``Context/connect(waitingMilliseconds:)``.
    func connect(waitingMilliseconds: Int64 = 0) throws -> BlockingLarderClient {
        // A timeout of 0 means no limit.
        let limit = timeoutMilliseconds
        let patience = limit == 0 ? 0 : min(limit + Int(waitingMilliseconds), ClientOptions.timeoutMillisecondsMax)
        return try BlockingLarderClient(
            socketPath: socketPath, database: database, password: daemonPassword, timeoutMilliseconds: patience,
            trustedUsers: trustedUsers)
    }
}
