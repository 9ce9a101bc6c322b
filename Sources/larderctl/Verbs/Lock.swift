import LarderClient
import LarderPlatform

extension Verb {
    static let lock = Verb(
        "lock", "NAME [OPTION…] -- COMMAND [ARGUMENT…]",
        "run COMMAND while holding the lock NAME, one process at a time",
        details: """
            Waits for the lock, in the order of arrival, runs COMMAND, and releases the lock. The lock is renewed while COMMAND
            runs. If this program is killed, the lock expires after --for, and the process that has waited longest gets it.
            COMMAND has this standard input, output and error, and in its environment:
              LARDER_LOCK_TOKEN   the fencing token: greater than the tokens of all previous holders
            SIGINT, SIGTERM and SIGHUP are sent to COMMAND; while this program waits for the lock, they terminate it.
            If the lock is lost (its entry was removed, or the daemon was away for longer than --for), COMMAND gets SIGTERM.
            If larderctl is killed with SIGKILL, COMMAND continues without the lock.
            The same lock in Swift: client.lock("NAME", for: .seconds(30)) { … }. A COMMAND that runs larderctl lock NAME
            again gets an error (2).
            NAME is a key of the database: choose one that nothing else stores, such as lock:reports. Any value stored there
            blocks the lock until it expires.
            Exits as COMMAND does: with its exit code, or 128 plus the number of the signal that terminated it. Its own exit codes
            are 6 if the lock was not free within --wait, 7 if the lock was lost, 5 if COMMAND cannot be started, and those of all
            verbs.
            """,
        options: [
            OptionSpec(
                "--for", "SECONDS",
                "when the lock expires if this program is killed (default: 30; fractions are allowed)"),
            OptionSpec("--wait", "SECONDS", "how long to wait for the lock; 0: do not wait (default: no limit)"),
        ],
        argumentCount: 2...Int.max
    ) { arguments, context in try LockVerbCall(arguments, context).run() }
}

private struct LockVerbCall: Sendable {
    /// The maximum of the time options: a day, in milliseconds.
    private static let longest: Int64 = 86_400_000

    private let socketPath: String?
    private let clientOptions: ClientOptions
    private let name: [UInt8]
    private let words: [[UInt8]]
    private let time: Duration
    private let limit: Duration?

    init(_ arguments: VerbArguments, _ context: Context) throws {
        name = arguments.words[0]
        // An empty name probably comes from an unset variable of a script. All such scripts would wait for each other.
        guard !name.isEmpty else { throw UsageError("the lock's name is empty") }
        words = Array(arguments.words.dropFirst())
        time = .milliseconds(try arguments.time("--for", 1...Self.longest) ?? 30_000)
        limit = try arguments.time("--wait", 0...Self.longest).map { .milliseconds($0) }
        let options = context.options
        socketPath = options.socketPath
        clientOptions = ClientOptions(
            database: options.database, password: options.password, timeoutMilliseconds: options.timeoutMilliseconds,
            trustedUsers: options.trustedUsers)
    }

    func run() throws -> ExitCode {
        try Self.checkDescriptors()
        let path = socketPath ?? LarderClient.defaultSocketPath
        let place = [FileSystem.canonical(path) ?? path, clientOptions.database ?? "0"]
        try ParentMarks.add(name, of: place, to: "LARDER_LOCKS", "held")
        let command = ChildCommand(signals: [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2])
        let task = Task { try await hold(command) }
        command.onSignal { task.cancel() }
        switch Awaited(task).result {
        case .success(let end): command.endProgram(as: end)
        case .failure(let error):
            let isLost = (error as? LarderClientError)?.code == .lockLost
            if command.receivedSignal != 0, !isLost, !(error is InputOutputError) {
                SignalSet.endProgram(by: command.receivedSignal)
            }
            throw error
        }
    }

    private func hold(_ command: ChildCommand) async throws -> ProcessEnd {
        let client = try await LarderClient.connect(socketPath: socketPath, options: clientOptions)
        defer { client.close() }
        return try await client.lock(name, for: time, waitingUpTo: limit) { lock in
            setenv("LARDER_LOCK_TOKEN", "\(lock.token)", 1)
            return try await command.run(words)
        }
    }

    /// Checks that enough descriptors are free: Swift's task runtime terminates the process if it cannot open
    /// descriptors for its timers.
    private static func checkDescriptors() throws(InputOutputError) {
        var opened: [Int32] = []
        defer { for descriptor in opened { close(descriptor) } }
        for _ in 0..<12 {
            let descriptor = dup(STDERR_FILENO)
            guard descriptor >= 0 else {
                // Standard error is closed, so an error could not be reported.
                guard errno != EBADF else { return }
                let reason = SystemErrorText.of(errno)
                throw InputOutputError(message: "too few descriptors are left (ulimit -n): \(reason)")
            }
            opened.append(descriptor)
        }
    }
}
