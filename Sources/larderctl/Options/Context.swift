import LarderClient

/// The environment of a verb.
struct Context {
    let options: Options
    let output: Output

    init(options: Options, output: Output) {
        self.options = options
        self.output = output
        output.isRaw = options.isRaw
    }

    /// Connects to the daemon that the options name.
    func connect() throws -> BlockingLarderClient {
        try BlockingLarderClient(
            socketPath: options.socketPath, database: options.database, password: options.password,
            timeoutMilliseconds: options.timeoutMilliseconds, trustedUsers: options.trustedUsers)
    }
}
