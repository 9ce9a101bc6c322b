import LarderClient
import LarderPlatform

extension Verb {
    static let fetch = Verb(
        "fetch", "KEY [OPTION…] -- COMMAND [ARGUMENT…]", "print an entry's value, and run COMMAND if there is none",
        details: """
            Prints the fresh value. If there is none, one of the clients that request it is chosen: it runs COMMAND,
            stores its standard output unchanged, and prints it. The others get the stale value (--grace), or wait for
            the new one. Shortly before the value expires, one client is chosen early.
            COMMAND has this standard input and standard error. By its exit code:
              0          its output is stored
              --absent   there is no value: this is remembered, and the stored value is removed
              --same     the stored value is still valid, and gets a new lifetime
              others     it failed: no client runs it until --back-off has passed; until then, a stale value is served
              If COMMAND cannot be started, or a signal terminates it or this program, another client is chosen at once.
              Without --lease the choice expires after 30 seconds: a longer COMMAND needs --lease, and if this program
              is then killed, the others wait until the lease expires.
              The output of COMMAND is printed but not stored if the entry was written or removed while it ran.
              A COMMAND that fetches its own KEY again gets an error.
            With --json: {"key":…,"state":…,"value":…,"age":…,"ttl":…,"stored":…}; the state is fresh, stale, lead (COMMAND
            was run here), absent, failed or wait; times are in milliseconds, or null. A stale value is a result: the
            exit code is 0, and if COMMAND failed, standard error has {"warning":{"code":…,"message":…,"exit":0}}.
            Exits with 1 if the origin has no value, and with 6 if none is available now.
            """,
        options: OptionSpec.lifetime + [
            OptionSpec.tag,
            OptionSpec("--max-age", "MS", "do not accept a value older than this"),
            OptionSpec("--wait", "MS", "how long to wait for other clients (default: 30000)"),
            OptionSpec("--lease", "MS", "how long COMMAND may take (default: 30000)"),
            OptionSpec("--back-off", "MS", "back-off after a failure (default: 5000; 0: none)"),
            OptionSpec("--absent", "CODE", "the exit code that means that there is no value"),
            OptionSpec("--absent-for", "MS", "how long to remember that (default: 60000)"),
            OptionSpec("--same", "CODE", "the exit code that means that the value is unchanged"),
        ],
        argumentCount: 2...Int.max
    ) { arguments, context in try FetchCall(arguments, context).run() }
}

private struct FetchCall {
    private static let longest: Int64 = 86_400_000

    private let context: Context
    private let key: [UInt8]
    private let command: [[UInt8]]
    private let wait: Int64
    private let maxAge: Int64?
    private let lease: Int64?
    private let backOff: Int64
    private let absentCode: Int?
    private let absentFor: Int64
    private let sameCode: Int?
    /// The options of the command SET that stores the output.
    private var storing: [String] = []

    /// The parsed reply to the command FETCH.
    private struct Answer {
        let state: String
        let value: [UInt8]?
        let token: [UInt8]?
        let age: Int64
        let ttl: Int64

        init(_ reply: RESPValue) throws {
            guard let fields = try reply.checked("fetch").elements, fields.count == 6, let state = fields[0].string,
                let age = fields[4].int, let ttl = fields[5].int
            else { throw LarderClientError.unexpectedReply(to: "fetch", "six fields") }
            (self.state, value, token, self.age, self.ttl) = (state, fields[1].bytes, fields[2].bytes, age, ttl)
        }
    }

    init(_ arguments: VerbArguments, _ context: Context) throws {
        func time(_ name: String, from least: Int64) throws -> Int64? {
            try arguments.time(name, least...Self.longest, in: .milliseconds)
        }
        func code(_ name: String) throws -> Int? { try arguments[name]?.number(1...255) }
        self.context = context
        key = arguments.words[0]
        command = Array(arguments.words.dropFirst())
        wait = try time("--wait", from: 0) ?? 30_000
        maxAge = try time("--max-age", from: 0)
        lease = try time("--lease", from: 1)
        backOff = try time("--back-off", from: 0) ?? 5000
        absentCode = try code("--absent")
        absentFor = try time("--absent-for", from: 1) ?? 60_000
        sameCode = try code("--same")
        if let absentCode, absentCode == sameCode {
            throw UsageError("--absent and --same cannot be the same exit code")
        }
        if let policy = try arguments.policy() { storing += ["POLICY", policy.description] }
        // Check the options before COMMAND runs.
        if let grace = try arguments.grace() { storing += ["GRACE", EntryPolicy.graceText(grace)] }
        if let jitter = try arguments.jitter() { storing += ["JITTER", "\(jitter)"] }
        let tags = try arguments.tags()
        if !tags.isEmpty { storing += ["TAGS", "\(tags.count)"] + tags }
    }

    // MARK: Requests

    func run() throws -> ExitCode {
        try ParentMarks.add(key, of: [context.options.database ?? "0"], to: "LARDER_FETCHING", "being fetched")
        let client = try context.options.connect(waitingMilliseconds: wait)
        var words = wordList("FETCH") + [key] + wordList("WAIT", "\(wait)")
        if let maxAge { words += wordList("MAXAGE", "\(maxAge)") }
        if let lease { words += wordList("LEASE", "\(lease)") }
        let answer = try Answer(client.command(bytes: words))
        switch answer.state {
        case "fresh", "stale", "same": return show(answer)
        case "lead": return try load(answer, client)
        case "absent":
            // A remaining time of 0 means that the daemon reads the value from an origin itself.
            if answer.ttl == 0 {
                complain("the daemon reads this database's origin, which has no value: COMMAND did not run", .notFound)
            }
            return show(answer, .notFound)
        case "failed":
            complain("the origin failed recently; retry in \(answer.ttl) ms", .noValue)
            return show(answer, .noValue)
        default:
            complain("another client is fetching it, and did not finish within \(wait) ms", .noValue)
            return show(answer, .noValue)
        }
    }

    // MARK: Refreshing

    private func load(_ answer: Answer, _ client: BlockingLarderClient) throws -> ExitCode {
        guard let token = answer.token else { throw LarderClientError.unexpectedReply(to: "fetch", "a token") }
        let child = ChildCommand(signals: [SIGINT, SIGTERM, SIGHUP])
        child.onSignal { SignalSet.endProgram(by: child.receivedSignal) }
        let (output, end): ([UInt8], ProcessEnd?)
        do {
            (output, end) = try child.collect(command)
        } catch {
            release(token, [], client)
            throw error
        }
        switch end {
        case nil:
            release(token, [], client)
            SignalSet.endProgram(by: child.receivedSignal)
        case .killed(let signal):
            release(token, [], client)
            return showPrevious(answer, "signal \(signal) terminated the command")
        case .exited(0):
            let isStored = store(output, token, client)
            return show("lead", output, age: 0, ttl: nil, isStored: isStored, .done)
        case .exited(let code) where Int(code) == absentCode:
            release(token, ["ABSENT", "\(absentFor)"], client)
            return show("absent", nil, age: nil, ttl: absentFor, isStored: false, .notFound)
        case .exited(let code) where Int(code) == sameCode:
            let isDone = release(token, ["UNCHANGED"], client)
            guard answer.value != nil else { return showNone() }
            return show("lead", answer.value, age: isDone ? 0 : answer.age, ttl: nil, isStored: isDone, .done)
        case .exited(let code):
            release(token, backOff > 0 ? ["FAILED", "\(backOff)"] : [], client)
            return showPrevious(answer, "the command failed with exit code \(code)")
        }
    }

    /// Stores the output of COMMAND. If that fails, the caller still prints the value.
    /// - Returns: whether the value was stored.
    private func store(_ value: [UInt8], _ token: [UInt8], _ client: BlockingLarderClient) -> Bool {
        let words = wordList("SET") + [key, value] + storing.map { Array($0.utf8) } + wordList("TOKEN") + [token]
        let reply = send(words, client, "not stored: ")
        if reply?.errorMessage != nil { release(token, backOff > 0 ? ["FAILED", "\(backOff)"] : [], client) }
        if reply == .null {
            complain("not stored: the entry was changed or purged during the command, or the command took too long")
        }
        return reply == .simpleString("OK")
    }

    /// Releases the lease for fetching the key.
    /// - Returns: whether the lease was still valid.
    @discardableResult
    private func release(_ token: [UInt8], _ words: [String], _ client: BlockingLarderClient) -> Bool {
        send(wordList("RELEASE") + [key, token] + words.map { Array($0.utf8) }, client) == .simpleString("OK")
    }

    /// Sends a command, and prints an error.
    /// - Returns: nil if there is no reply.
    private func send(_ words: [[UInt8]], _ client: BlockingLarderClient, _ problem: String = "") -> RESPValue? {
        do throws(LarderClientError) {
            let reply = try client.command(bytes: words)
            if let text = reply.errorMessage { complain(problem + text) }
            return reply
        } catch {
            // Do not retry, because the daemon ends the lease when the connection is lost.
            complain(problem + error.message)
            return nil
        }
    }

    // MARK: Replies

    /// - Parameter exitCode: the exit code that the program will have.
    private func complain(_ text: String, _ exitCode: ExitCode = .done) {
        Failure(code: "fetch", message: "\(printableKey(key)): \(text)", exitCode: exitCode)
            .show(asJSON: context.options.json)
    }

    /// Prints the previous value after COMMAND has returned none, unless it is older than `--max-age`.
    private func showPrevious(_ answer: Answer, _ failure: String) -> ExitCode {
        guard answer.value != nil, maxAge.map({ $0 > 0 && answer.age <= $0 }) ?? true else {
            complain(failure + (answer.value == nil ? "" : ", and the stored value is older than --max-age"), .noValue)
            return showNone()
        }
        complain(failure)
        let state = answer.ttl > 0 ? "fresh" : "stale"
        return show(state, answer.value, age: answer.age, ttl: answer.ttl, isStored: false, .done)
    }

    private func showNone() -> ExitCode { show("failed", nil, age: nil, ttl: nil, isStored: false, .noValue) }

    private func show(_ answer: Answer, _ code: ExitCode = .done) -> ExitCode {
        show(answer.state, answer.value, age: answer.age, ttl: answer.ttl, isStored: false, code)
    }

    private func show(
        _ state: String, _ value: [UInt8]?, age: Int64?, ttl: Int64?, isStored: Bool, _ code: ExitCode
    ) -> ExitCode {
        func time(_ milliseconds: Int64?) -> Int64? { milliseconds.flatMap { $0 < 0 ? nil : $0 } }
        context.show([
            "key": key, "state": state, "value": value, "age": time(age), "ttl": time(ttl), "stored": isStored,
        ]) { output in value.map { output.value($0) } }
        return code
    }
}
