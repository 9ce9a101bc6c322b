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

    /// Connects to the daemon given by the options.
    /// - Parameter waitingMilliseconds: the additional time for replies that wait for the daemon.
    func connect(waitingMilliseconds: Int64 = 0) throws -> BlockingLarderClient {
        try options.connect(waitingMilliseconds: waitingMilliseconds)
    }
}

extension Options {
    /// Like ``Context/connect(waitingMilliseconds:)``.
    func connect(waitingMilliseconds: Int64 = 0) throws -> BlockingLarderClient {
        // 0 means no limit.
        let limit = timeoutMilliseconds
        let patience = limit == 0 ? 0 : min(limit + Int(waitingMilliseconds), ClientOptions.timeoutMillisecondsMax)
        return try BlockingLarderClient(
            socketPath: socketPath, database: database, password: daemonPassword, timeoutMilliseconds: patience,
            trustedUsers: trustedUsers)
    }
}
