import LarderClient
import LarderPlatform

extension Verb {
    static let top = Verb(
        "top", "", "show the daemon's activity live, full-screen",
        details: """
            Needs a terminal. Keys: q quits; c, l, a, p and n sort the commands by calls per second, load (as a share of
            one CPU), average time, slowest calls (99.9 %) and name; d shows the databases instead. Averages are those
            of the last interval, percentiles those since the daemon's start, as upper bounds. If the daemon stops, it
            waits for the next one. With --json: samples one interval, prints one object, and exits; no terminal is
            needed.
            """,
        options: [intervalOption]
    ) { arguments, context in
        let milliseconds = try interval(arguments, intervalOption.name)
        // Connect before switching to the full screen, so that an error stays visible.
        let client = try context.options.connect()
        var screen = TopScreen(socketPath: client.socketPath, info: InfoText(""))
        if context.options.json {
            let first = try Answer(client)
            _ = poll(nil, 0, Int32(clamping: milliseconds))
            show(try Answer(client), after: first, on: &screen)
            context.output.json(screen.json)
            return .done
        }
        let terminal = try Terminal()
        defer { terminal.close() }
        try watch(&screen, terminal, client, context.options, milliseconds)
        return .done
    }

    /// The daemon's figures at one time.
    private struct Answer {
        let client: BlockingLarderClient
        let info: InfoText
        let databases: [DatabaseInfo]
        /// When the reply arrived, in milliseconds of the monotonic clock.
        let time: Int64

        init(_ client: BlockingLarderClient) throws {
            self.client = client
            info = InfoText(try client.serverInfo(section: "everything"))
            databases = try client.databases()
            time = MonotonicClock.milliseconds()
        }
    }

    /// The time without a reply, in milliseconds, after which the screen reports that the daemon does not reply.
    private static let silenceMilliseconds: Int64 = 1000

    /// Shows updates until the user presses q or a signal stops the program.
    private static func watch(
        _ screen: inout TopScreen, _ terminal: Terminal, _ first: BlockingLarderClient, _ options: Options,
        _ interval: Int64
    ) throws {
        var client: BlockingLarderClient? = first
        // Requests run on a separate thread, so that keys work even without a reply.
        var request: Awaited<Answer>?
        var last: Answer?
        var hasFailed = false
        var askedAt: Int64?
        var nextAt = MonotonicClock.milliseconds()
        while true {
            if let outcome = request?.result(waitingUpTo: 0) {
                (request, askedAt) = (nil, nil)
                nextAt = MonotonicClock.milliseconds() + interval
                switch outcome {
                case .success(let answer):
                    hasFailed = false
                    show(answer, after: last, on: &screen)
                    last = answer
                    client = answer.client
                case .failure(let error):
                    hasFailed = true
                    // Reconnect for the next request.
                    (last, client) = (nil, nil)
                    screen.rates = nil
                    screen.problem =
                        "trying again: " + TerminalText.escaped((error as? LarderClientError)?.message ?? "\(error)")
                }
            }
            let now = MonotonicClock.milliseconds()
            if askedAt == nil, now >= nextAt {
                askedAt = now
                request = Awaited(
                    onThread: { [client] in try Answer(client ?? options.connect()) }, onEnd: { terminal.wake() })
            }
            // Do not replace a previous error, which is more informative.
            if let askedAt, now - askedAt >= silenceMilliseconds, !hasFailed {
                screen.problem = "the daemon has not replied for \(NumberText.duration((now - askedAt) / 1000))"
            }
            let size = Terminal.size
            terminal.draw(screen.lines(width: size.width, height: size.height))
            // Wait for at most a second, so that the shown time without a reply is updated.
            switch terminal.wait(milliseconds: askedAt == nil ? max(1, nextAt - now) : silenceMilliseconds) {
            case .key(let key):
                guard press(key, &screen) else { return }
            case .resized, .timeout, .woken: break
            case .ended(let signal):
                terminal.close()
                SignalSet.endProgram(by: signal)
            }
        }
    }

    static let intervalOption = OptionSpec(
        "--interval", "SECONDS", "the interval between updates, from 0.1 (default: 1)")

    /// Returns the interval given by an option, in milliseconds; a second if the option is not given.
    static func interval(_ arguments: VerbArguments, _ option: String) throws -> Int64 {
        guard arguments[option]?.bytes != nil else { return 1000 }
        return try arguments.time(option, 100...3_600_000) ?? 1000
    }

    /// Handles a key.
    /// - Returns: false if the program must quit.
    private static func press(_ key: UInt8, _ screen: inout TopScreen) -> Bool {
        let key = Character(Unicode.Scalar(key))
        if key == "q" || key == "Q" { return false }
        if key == "d" { screen.table = screen.table == .commands ? .databases : .commands }
        if let order = TopScreen.Order(rawValue: key) { screen.order = order }
        return true
    }

    private static func show(_ answer: Answer, after last: Answer?, on screen: inout TopScreen) {
        (screen.socketPath, screen.info, screen.databases) = (answer.client.socketPath, answer.info, answer.databases)
        (screen.problem, screen.rates) = (nil, nil)
        guard let last else { return }
        let rates = InfoRates(from: last.info, to: answer.info, milliseconds: answer.time - last.time)
        if !rates.isRestarted { screen.rates = rates }
    }
}
