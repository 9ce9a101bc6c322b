import LarderCommandCatalog
import LarderEngine
import LarderPlatform
import LarderRESP

/// TIME, SAVE, ROLE, MONITOR, DEBUG, SLOWLOG, LATENCY and other administrative commands.
extension CommandTable {
    static let administrationCommands: Handlers = [
        .time: time,
        .lastsave: { call in call.reply(call.server.saves.lastSeconds) },
        .save: save,
        .bgsave: bgsave,
        .bgrewriteaof: { call in
            .later { [server = call.server] reply in
                let isStarted = server.startSaving()
                reply.simple("Background append only file rewriting \(isStarted ? "started" : "scheduled")")
            }
        },
        .wait: wait,
        .role: { call in
            call.session.replies.array(count: 3)
            call.session.replies.field("master", 0)
            call.session.replies.array(count: 0)
            return .done
        },
        .debug: debug,
        .monitor: monitor,
        .slowlogGet: slowLog,
        .slowlogLen: { call in call.reply(call.server.slowLog.count) },
        .slowlogReset: { call in
            call.server.slowLog.reset()
            return call.ok()
        },
        .latencyLatest: latest,
        .latencyHistory: history,
        .latencyReset: { call in
            call.reply(call.server.latency.reset((2..<max(2, call.count)).map { call.text($0) }))
        },
        .latencyGraph: graph,
        .latencyDoctor: doctor,
        .latencyHistogram: histogram,
    ]

    @Sendable private static func time(_ call: inout Call) throws(CommandError) -> Outcome {
        // The engine's time has only milliseconds. Convert it to the wall clock, and add the wall clock's microseconds.
        let now = max(0, call.now - call.timeAhead)
        var clock = timespec()
        clock_gettime(CLOCK_REALTIME, &clock)
        call.session.replies.array(count: 2)
        call.session.replies.bulk("\(now / 1000)")
        call.session.replies.bulk("\(now % 1000 * 1000 + Int64(clock.tv_nsec) / 1000 % 1000)")
        return .done
    }

    @Sendable private static func save(_ call: inout Call) throws(CommandError) -> Outcome {
        guard !call.server.saves.isUnderWay else { throw CommandError("ERR Background save already in progress") }
        let server = call.server
        return .okLater { () throws(CommandError) in try CommandError.wrap(server.save()) }
    }

    @Sendable private static func bgsave(_ call: inout Call) throws(CommandError) -> Outcome {
        guard call.count == 1 || call.count == 2 && call.isWord(1, "SCHEDULE") else { throw .syntax }
        let server = call.server
        return .later { (reply) throws(CommandError) in
            guard server.startSaving() else { throw CommandError("ERR Background save already in progress") }
            reply.simple("Background saving started")
        }
    }

    @Sendable private static func wait(_ call: inout Call) throws(CommandError) -> Outcome {
        _ = try call.integer(1)
        guard let timeout = parseInteger(call.bytes(2)) else {
            throw CommandError("ERR timeout is not an integer or out of range")
        }
        guard timeout >= 0 else { throw CommandError("ERR timeout is negative") }
        return call.reply(0)
    }

    @Sendable private static func monitor(_ call: inout Call) throws(CommandError) -> Outcome {
        if call.isInTransaction { throw CommandError("ERR MONITOR isn't allowed for DENY BLOCKING client") }
        // As in Redis, MONITOR has no effect and no reply if the client has already sent it.
        guard !call.session.isMonitoring else { return .done }
        call.session.beginMonitoring()
        return call.ok()
    }

    private static let sleepSecondsMax = 3600.0

    @Sendable private static func debug(_ call: inout Call) throws(CommandError) -> Outcome {
        guard call.server.limits.allowsDebug else {
            throw CommandError(
                "ERR DEBUG command not allowed: start larderd with --enable-debug")
        }
        if call.isWord(1, "HELP") {
            let row = CommandMetadata.debug
            call.session.replies.array(count: 2)
            call.session.replies.simple("\(row.name.uppercased()) \(row.syntax)")
            call.session.replies.simple(row.summary)
            return .done
        }
        guard call.isWord(1, "SLEEP"), call.count == 3 else { throw .subcommand(call, of: "DEBUG") }
        // As in Redis, a text that is not a number counts as 0.
        let seconds = Double(call.text(2)) ?? 0
        guard seconds <= sleepSecondsMax else { throw CommandError("ERR the longest sleep is 3600 seconds") }
        return .okLater { () throws(CommandError) in if seconds > 0 { usleep(UInt32(seconds * 1_000_000)) } }
    }

    // MARK: SLOWLOG and LATENCY

    @Sendable private static func slowLog(_ call: inout Call) throws(CommandError) -> Outcome {
        guard call.count <= 3 else { throw .subcommand(call, of: "SLOWLOG") }
        var count = 10
        if call.count == 3 {
            guard let number = parseInteger(call.bytes(2)), number >= -1 else {
                throw CommandError("ERR count should be greater than or equal to -1")
            }
            count = number == -1 ? Int.max : Int(clamping: number)
        }
        let entries = call.server.slowLog.newest(count)
        let replies = call.session.replyMemory
        replies.pointee.array(count: entries.count)
        for entry in entries {
            replies.pointee.array(count: 6)
            replies.pointee.integer(entry.id)
            replies.pointee.integer(entry.time)
            replies.pointee.integer(entry.microseconds)
            replies.pointee.words(entry.words)
            replies.pointee.bulk(entry.address)
            replies.pointee.bulk(entry.name)
        }
        return .done
    }

    @Sendable private static func latest(_ call: inout Call) throws(CommandError) -> Outcome {
        let events = call.server.latency.all
        let replies = call.session.replyMemory
        replies.pointee.array(count: events.count)
        for (name, event) in events {
            replies.pointee.array(count: 4)
            replies.pointee.bulk(name)
            replies.pointee.integer(event.samples.last?.time ?? 0)
            replies.pointee.integer(event.samples.last?.milliseconds ?? 0)
            replies.pointee.integer(event.longest)
        }
        return .done
    }

    @Sendable private static func history(_ call: inout Call) throws(CommandError) -> Outcome {
        let samples = call.server.latency.event(call.text(2))?.samples ?? []
        call.session.replies.array(count: samples.count)
        for sample in samples {
            call.session.replies.array(count: 2)
            call.session.replies.integer(sample.time)
            call.session.replies.integer(sample.milliseconds)
        }
        return .done
    }

    /// Draws a bar for each of the newest samples. Its length is proportional to the duration, up to 60 characters.
    @Sendable private static func graph(_ call: inout Call) throws(CommandError) -> Outcome {
        guard let event = call.server.latency.event(call.text(2)), !event.samples.isEmpty else {
            throw CommandError("ERR No samples available for event '", shown(call.bytes(2), 128), "'")
        }
        let samples = event.samples.suffix(40)
        let most = max(1, samples.map(\.milliseconds).max() ?? 1)
        var text = "\(call.text(2)) - high \(most) ms, low \(samples.map(\.milliseconds).min() ?? 0) ms "
        text += "(all time high \(event.longest) ms)\n"
        for sample in samples {
            let bar = String(repeating: "#", count: Int(max(1, sample.milliseconds * 60 / most)))
            text += "\(sample.time) \(bar) \(sample.milliseconds)\n"
        }
        call.session.replies.verbatim(text)
        return .done
    }

    @Sendable private static func doctor(_ call: inout Call) throws(CommandError) -> Outcome {
        let latency = call.server.latency
        let threshold = latency.threshold.load(ordering: .relaxed)
        var text = ""
        if threshold == 0 {
            text = "Latency monitoring is off. To enable it: CONFIG SET latency-monitor-threshold <milliseconds>.\n"
        } else if latency.all.isEmpty {
            text = "No event took \(threshold) ms or longer since the last reset.\n"
        }
        for (name, event) in latency.all {
            let times = event.samples.map(\.milliseconds)
            let mean = times.reduce(0, +) / Int64(max(1, times.count))
            text += "\(name): \(times.count) samples of \(threshold) ms or longer, mean \(mean) ms, "
            text += "longest ever \(event.longest) ms.\n"
        }
        call.session.replies.verbatim(text)
        return .done
    }

    @Sendable private static func histogram(_ call: inout Call) throws(CommandError) -> Outcome {
        let sums = call.server.statistics.sums
        var rows: [CommandSpec] = []
        if call.count == 2 {
            rows = withSubcommands
        } else {
            for index in 2..<call.count {
                guard let spec = findWithSubcommand(call.text(index)) else { continue }
                rows += spec.subcommands.isEmpty ? [spec] : spec.subcommands
            }
        }
        let shown = rows.compactMap { row in sums[row.metadata.number].flatMap { $0.calls > 0 ? (row, $0) : nil } }
        let replies = call.session.replyMemory
        replies.pointee.map(count: shown.count)
        for (row, sum) in shown {
            replies.pointee.bulk(row.name)
            replies.pointee.map(count: 2)
            replies.pointee.field("calls", sum.calls)
            replies.pointee.bulk("histogram_usec")
            // As in Redis, each count includes all faster calls. A range without calls is omitted.
            var total = 0
            var bounds: [(Int, Int)] = []
            for (bucket, count) in sum.histogram.enumerated() where count > 0 {
                total += count
                bounds.append((1 << bucket, total))
            }
            replies.pointee.map(count: bounds.count)
            for (bound, count) in bounds {
                replies.pointee.integer(bound)
                replies.pointee.integer(count)
            }
        }
        return .done
    }
}
