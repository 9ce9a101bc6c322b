import LarderClient
import LarderCommandCatalog

extension Verb {
    static let latency = Verb(
        "latency", "[COMMAND…]", "show the latencies of commands, and slow commands",
        details: """
            A table of the commands since the daemon's start (or CONFIG RESETSTAT): calls, average, the 50th, 99th and
            99.9th percentile as upper bounds, failed calls, and the total time. Then the latest commands of the slow
            log, and the events of LATENCY if it is enabled; parts that this user may not see are listed instead. With
            --json: {"commands":[…],"slow":[…],"events":[…],"unseen":[{"what":"slow" or "events","reason":…}]}, times in
            microseconds.
            """,
        options: [
            OptionSpec("--sort", "COLUMN", "total (default), calls, average, p99 or name"),
            OptionSpec("--slow", "N", "commands of the slow log to show (default: 10; 0: none)"),
        ],
        argumentCount: 0...64
    ) { arguments, context in
        let wanted = arguments.words.map { String(decoding: $0, as: UTF8.self).lowercased() }
        let count = try arguments["--slow"]?.number(0...10_000) ?? 10
        let client = try context.options.connect()
        let figures = InfoText(try client.serverInfo(section: "everything"))
        try check(wanted, figures)
        let commands = try sorted(
            figures.commands.values.filter { command in
                command.calls > 0
                    && (wanted.isEmpty || wanted.contains { command.name == $0 || command.name.hasPrefix($0 + "|") })
            }, arguments)
        let slowReply = count == 0 ? .array([]) : try client.command("SLOWLOG", "GET", "\(count)")
        let eventsReply = try client.command("LATENCY", "LATEST")
        let (slow, events) = (SlowCommand.read(slowReply), LatencyEvent.read(eventsReply))
        let unseen = [("slow", slowReply), ("events", eventsReply)].compactMap { what, reply in
            reply.errorMessage.map { (what: what, reason: $0) }
        }
        context.show([
            "commands": commands, "slow": slow, "events": events,
            "unseen": JSONText.array(unseen.map { ["what": $0.what, "reason": $0.reason] }),
        ]) { output in
            show(commands, slow, events, output)
            for (what, reason) in unseen {
                let name = what == "slow" ? "slow commands" : "events of LATENCY"
                output.oneLine("\(name): not shown: \(reason)")
            }
        }
        return .done
    }

    /// - Throws: if one of the words is not the name of a command.
    private static func check(_ wanted: [String], _ figures: InfoText) throws(UsageError) {
        for name in wanted where figures.commands[name] == nil {
            let words = name.split(separator: "|", maxSplits: 1).map { Array($0.utf8) }
            if let row = CommandMetadata.row(of: words), row.name.lowercased() == name { continue }
            let ran = figures.commands.values.filter { $0.calls > 0 }.map(\.name).sorted()
            throw UsageError(
                "unknown command '\(printableKey(name.utf8))'"
                    + Suggestion.text(for: name, among: CommandMetadata.all.map { $0.name.lowercased() })
                    + (ran.isEmpty ? "" : "; commands that have run: " + ran.joined(separator: ", ")))
        }
    }

    private static func sorted(_ commands: [CommandFigures], _ arguments: VerbArguments) throws -> [CommandFigures] {
        let columns: [String: (CommandFigures) -> Double] = [
            "total": { Double($0.microseconds) }, "calls": { Double($0.calls) }, "average": { $0.averageMicroseconds },
            "p99": { $0.p99 ?? 0 }, "name": { _ in 0 },
        ]
        let value =
            try arguments["--sort"]?.oneOf("total, calls, average, p99 or name") { columns[$0] }
            ?? { Double($0.microseconds) }
        return commands.sorted { value($0) != value($1) ? value($0) > value($1) : $0.name < $1.name }
    }

    private static func show(
        _ commands: [CommandFigures], _ slow: [SlowCommand], _ events: [LatencyEvent], _ output: Output
    ) {
        let rows =
            [["COMMAND", "CALLS", "AVERAGE", "P50", "P99", "P99.9", "FAILED", "TOTAL"]]
            + commands.map {
                [
                    $0.name, "\($0.calls)", NumberText.microseconds($0.averageMicroseconds),
                    NumberText.microseconds($0.p50), NumberText.microseconds($0.p99),
                    NumberText.microseconds($0.p999), "\($0.failed)", NumberText.microseconds(Double($0.microseconds)),
                ]
            }
        output.table(rows, rightAligned: [1, 2, 3, 4, 5, 6, 7])
        if !slow.isEmpty {
            output.line("\nslow commands, the latest first:")
            for command in slow { output.oneLine(command.line) }
        }
        guard !events.isEmpty else { return }
        output.line("\nevents of LATENCY:")
        let eventRows =
            [["EVENT", "LAST", "LATEST", "LONGEST"]]
            + events.map {
                [
                    $0.name, TimeText.instant(seconds: $0.seconds), NumberText.microseconds(Double($0.latest) * 1000),
                    NumberText.microseconds(Double($0.longest) * 1000),
                ]
            }
        output.table(eventRows, rightAligned: [2, 3])
    }
}

extension CommandFigures: JSONValue {
    var json: JSONText {
        [
            "name": name, "calls": calls, "failed": failed, "rejected": rejected, "average": averageMicroseconds,
            "p50": p50, "p99": p99, "p99.9": p999, "total": microseconds,
        ]
    }
}

extension SlowCommand: JSONValue {
    /// Whether the command is not an administrative one.
    var isOfProgram: Bool {
        guard let row = CommandMetadata.row(of: words) else { return true }
        return row.group != .server && !row.flags.contains(.admin)
    }

    /// The line for a user: the time, the duration, the command, and its first argument, which is usually a key.
    var line: [UInt8] {
        var line = Array("\(TimeText.instant(seconds: seconds))  \(NumberText.microseconds(Double(microseconds)))".utf8)
        for word in words.prefix(2) { line += [0x20] + Array(printableKey(word).utf8) }
        if words.count > 2 { line += Array(" … (\(words.count) words)".utf8) }
        return line
    }

    var json: JSONText { ["time": seconds, "microseconds": microseconds, "words": words, "client": clientName] }
}

/// An event in the reply to LATENCY LATEST. `latest` and `longest` are in milliseconds.
struct LatencyEvent: JSONValue {
    let name: String
    let seconds: Int64
    let latest: Int64
    let longest: Int64

    static func read(_ reply: RESPValue) -> [LatencyEvent] {
        (reply.elements ?? []).compactMap { element in
            guard let fields = element.elements, fields.count >= 4, let name = fields[0].string,
                let seconds = fields[1].int, let latest = fields[2].int, let longest = fields[3].int
            else { return nil }
            return LatencyEvent(name: name, seconds: seconds, latest: latest, longest: longest)
        }
    }

    var json: JSONText {
        ["event": name, "time": seconds, "latestMilliseconds": latest, "longestMilliseconds": longest]
    }
}
