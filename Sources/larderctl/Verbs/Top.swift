import LarderClient
import Platform

extension Verb {
    static let top = Verb(
        name: "top", synopsis: "",
        summary: "show what the daemon does, full-screen, as it changes",
        details: """
            Needs a terminal. Keys: q quits; c, l, a, p and n sort the commands by calls a second, load (the share of one
            processor), average time, slowest calls (99.9 %) and name; d shows the databases instead. Averages are those of the
            last interval, percentiles those since the daemon's start, as upper bounds. When the daemon goes away, it waits for the
            next one. With --json: looks for one interval, prints one object, and ends; no terminal is needed.
            """,
        options: [intervalOption],
        argumentCount: 0...0
    ) { arguments, context in
        let milliseconds = try interval(arguments)
        if context.options.json {
            let client = try context.connect()
            var screen = try look(client, nil, milliseconds: 0)
            _ = poll(nil, 0, Int32(clamping: milliseconds))
            screen = try look(client, screen.info, milliseconds: milliseconds)
            context.output.json(screen.json)
            return .done
        }
        // Before the screen is taken: who cannot connect at all wants to read why.
        var client: BlockingLarderClient? = try context.connect()
        let terminal = try Terminal()
        defer { terminal.close() }
        var screen = TopScreen(socketPath: client?.socketPath ?? "", info: InfoFigures(""))
        var askedAt: Int64?
        while true {
            let now = MonotonicClock.milliseconds()
            if askedAt.map({ now - $0 >= milliseconds }) ?? true {
                refresh(&screen, &client, context, milliseconds: askedAt.map { now - $0 })
                askedAt = MonotonicClock.milliseconds()
            }
            let size = terminal.size
            terminal.draw(screen.lines(width: size.width, height: size.height))
            let rest = max(1, (askedAt ?? now) + milliseconds - MonotonicClock.milliseconds())
            switch terminal.wait(milliseconds: rest) {
            case .key(let key):
                guard press(key, &screen) else { return .done }
            case .resized, .timeout: break
            case .ended(let signal):
                terminal.close()
                LoaderProcess.endProgram(by: signal)
            }
        }
    }

    static let intervalOption = OptionSpec(
        name: "--interval", value: "SECONDS", summary: "how long to wait between two looks (default: 1)")

    /// An interval in milliseconds.
    static func interval(_ arguments: VerbArguments, _ option: String = "--interval") throws -> Int64 {
        guard let given = arguments.options[option], given.value != nil else { return 1000 }
        guard let seconds = Double(try given.text()), seconds >= 0.1, seconds <= 3600 else {
            throw UsageError("\(option) takes seconds, from 0.1 to 3600")
        }
        return Int64((seconds * 1000).rounded())
    }

    /// - Returns: false for the end.
    private static func press(_ key: UInt8, _ screen: inout TopScreen) -> Bool {
        let key = Character(Unicode.Scalar(key))
        if key == "q" || key == "Q" { return false }
        if key == "d" { screen.table = screen.table == .commands ? .databases : .commands }
        if let order = TopScreen.Order.allCases.first(where: { $0.key == key }) { screen.order = order }
        return true
    }

    private static func refresh(
        _ screen: inout TopScreen, _ client: inout BlockingLarderClient?, _ context: Context, milliseconds: Int64?
    ) {
        do {
            let connected = try client ?? context.connect()
            client = connected
            let before = screen.problem == nil && milliseconds != nil ? screen.info : nil
            let next = try look(connected, before, milliseconds: milliseconds ?? 0)
            (screen.info, screen.rates, screen.databases) = (next.info, next.rates, next.databases)
            screen.problem = nil
        } catch {
            client = nil
            screen.rates = nil
            screen.problem =
                "trying again: " + TopScreen.clean((error as? LarderClientError)?.message ?? "\(error)")
        }
    }

    private static func look(
        _ client: BlockingLarderClient, _ before: InfoFigures?, milliseconds: Int64
    ) throws -> TopScreen {
        let info = InfoFigures(try client.serverInfo(section: "everything"))
        var screen = TopScreen(socketPath: client.socketPath, info: info)
        screen.databases = try client.databases()
        if let before, !before.fields.isEmpty {
            let rates = InfoRates(from: before, to: info, milliseconds: milliseconds)
            if !rates.isRestarted { screen.rates = rates }
        }
        return screen
    }
}
