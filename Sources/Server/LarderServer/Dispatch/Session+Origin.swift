import LarderCommandCatalog
import LarderEngine
import LarderOriginClients
import LarderOutboxes
import LarderPlatform
import LarderRESP

/// Commands in a database with an origin.
extension Session {
    /// Runs a command that may need the origin.
    func runBeforeOrigin(_ command: CommandSpec, _ call: inout Call) throws(CommandError) -> Outcome {
        let spec = command.metadata
        if transactions.execution != nil { return try command.run(&call) }
        if spec == .exec, let outcome = try executeAtOrigin() { return outcome }
        let (count, words) = (call.count, call)
        let keys = spec.keyIndices(count: count) { words.bytes($0) }
        let isScript = spec.flags.contains(.runsScript)
        guard !keys.isEmpty || isScript, !spec.flags.contains(.admin), spec != .watch else {
            return try command.run(&call)
        }
        // The origin may have values of all types, so send commands for types that Larder does not store too.
        let isSent = spec.flags.contains(.write) || isScript || spec.absent != nil
        // A forwarded command gets its reply even if the origin was removed in the meantime.
        if isSent || origin.isForwarded, origin.call != nil {
            let outcome = try replyWithOrigins()
            if case .done = outcome { notifyUnheard(spec, keys.map { words.array($0) }, nil) }
            return outcome
        }
        if let failure = origin.failure { throw failure }
        guard let tier = origin.tier else {
            if origin.call != nil { endOriginCall() }
            return try command.run(&call)
        }
        if isSent { return try send(spec, tier, keys, &call) }
        let start = replies.count
        if call.readsOrigin, let until = try askOrigin(tier, keys, call) {
            return .waits(until: until)
        }
        if Self.describes.contains(spec), let asked = origin.call, asked.failure?.isOfOtherType == true {
            // The value is not a string: let the origin describe it.
            origin.isForwarded = true
            asked.expect(1)
            tier.origin.perform(call.words, key: call.array(keys[0])) { asked.take(reply: $0) }
            return .waits(until: waitEnd)
        }
        do throws(CommandError) {
            let outcome = try command.run(&call)
            if case .waits = outcome { return outcome }
            if call.readsOrigin { notifyUnheard(spec, keys.map { words.array($0) }, tier) }
            endOriginCall()
            return outcome
        } catch {
            guard let key = call.missing else { throw error }
            call.missing = nil
            try checkOriginLimit()
            replies.removeLast(replies.count - start)
            ask(tier, [key])
            return .waits(until: waitEnd)
        }
    }

    /// Throws if the command would store an entry in an outbox: only DEL and UNLINK may write there.
    func checkMayChangeOutbox(_ spec: CommandMetadata) throws(CommandError) {
        if spec.flags.contains(.write), spec.keys.first > 0, spec != .del, spec != .unlink { throw .inOutbox }
    }

    // MARK: Reading

    /// Commands that read metadata of values of any type, with one key each.
    private static let describes: Set<CommandMetadata> = [
        .type, .ttl, .pttl, .expiretime, .pexpiretime, .dump, .objectEncoding, .objectFreq, .objectIdletime,
        .objectRefcount,
    ]

    /// Requests from the origin those keys of a command whose entries are not current.
    /// - Returns: the end of the wait; nil if the command can run.
    private func askOrigin(_ tier: OriginTier, _ keys: [Int], _ call: Call) throws(CommandError) -> Int64? {
        if let asked = origin.call {
            guard asked.isComplete else {
                if isStopping {
                    throw CommandError("ORIGIN the daemon is shutting down, and the origin has not replied yet")
                }
                try checkOriginLimit()
                if asked.takeNews() {
                    // A replica's reply is served as stale.
                    origin.servesStale = true
                    return nil
                }
                guard server.limits.originPatience > 0, !origin.servesStale,
                    asked.waitedMilliseconds >= server.limits.originPatience
                else { return waitEnd }
                // From here on, a stale value is used if there is one.
                origin.servesStale = true
                return nil
            }
            return nil
        }
        let missing = keys.filter { tier.knowledge(call.bytes($0), now: call.now) == .nothing }
        if missing.isEmpty { return nil }
        ask(tier, missing.map { call.array($0) })
        return waitEnd
    }

    /// The extra time before a command fails by itself. The origin reports a timeout at the limit, and its error needs
    /// this time to arrive.
    private static let slackMilliseconds: Int64 = 20

    /// Limits the total wait of a command, regardless of the number of requests.
    private func checkOriginLimit() throws(CommandError) {
        let limit = server.limits.origin.call
        guard let waited = origin.call?.waitedMilliseconds, waited >= Int64(limit) + Self.slackMilliseconds else {
            return
        }
        throw CommandError(.timedOut(milliseconds: limit))
    }

    /// When a command that waits for the origin is checked again, even if no reply has arrived.
    private var waitEnd: Int64 {
        let waited = origin.call?.waitedMilliseconds ?? 0
        let patience = server.limits.originPatience
        var wait = Int64(server.limits.origin.call) + Self.slackMilliseconds + 1
        if patience > 0, !origin.servesStale, waited < patience { wait = min(wait, patience) }
        return clock.monotonic() + max(1, wait - waited)
    }

    private func ask(_ tier: OriginTier, _ keys: [[UInt8]]) {
        let call = beginCall()
        let keys = Array(Set(keys))
        call.expect(keys.count)
        tier.ask(keys, early: { call.take($0, early: $1) }, then: { call.take($0, $1) })
    }

    private func beginCall() -> OriginCall {
        if let call = origin.call { return call }
        let call = OriginCall(startedAt: MonotonicClock.nanoseconds(), wakeUp: wakeUp)
        origin.call = call
        return call
    }

    // MARK: Writing

    /// Forwards a command to the origin, and replies with the origin's reply.
    private func send(
        _ spec: CommandMetadata, _ tier: OriginTier, _ keys: [Int], _ call: inout Call
    ) throws(CommandError) -> Outcome {
        let write = try OriginCommand(spec, keys, call)
        if let outbox = tier.outbox, write.canWait {
            replies.write(try call.writeBehind(write, tier, outbox))
            return .done
        }
        send(write.keys, tier) { then in write.send(to: tier, then: then) }
        return .waits(until: waitEnd)
    }

    /// Sends a command to the origin after all queued writes of its keys.
    private func send(
        _ keys: [[UInt8]], _ tier: OriginTier,
        _ body: @escaping @Sendable (@escaping @Sendable (Result<RESPValue, OriginError>) -> Void) -> Void
    ) {
        let asked = beginCall()
        asked.expect(1)
        guard let outbox = tier.outbox else { return body { asked.take(reply: $0) } }
        let limit = tier.limits.call
        outbox.index.whenClear(keys, until: server.engine.monotonic() + Int64(limit)) { isClear in
            if isClear { return body { asked.take(reply: $0) } }
            asked.take(
                reply: .failure(
                    .unavailable(
                        "queued writes of its keys were not delivered to the origin within \(limit) ms: the "
                            + "command was not executed")))
        }
    }

    /// Replies with the origin's reply, or waits for it.
    private func replyWithOrigins() throws(CommandError) -> Outcome {
        if let reply = origin.call?.takeReply() {
            endOriginCall()
            switch reply {
            case .success(let value): replies.write(value)
            case .failure(let error): throw CommandError(error)
            }
            return .done
        }
        if isStopping {
            throw CommandError(
                "ORIGIN the daemon is shutting down; the origin may or may not have executed the command")
        }
        try checkOriginLimit()
        return .waits(until: waitEnd)
    }

    // MARK: Transactions

    /// Handles EXEC if the origin can run the commands as its own transaction: each command has keys, and all keys are
    /// in the selected database.
    /// - Returns: nil for other transactions: they run here, and refuse commands that need the origin.
    private func executeAtOrigin() throws(CommandError) -> Outcome? {
        do throws(CommandError) {
            if origin.call != nil {
                let outcome = try replyWithOrigins()
                if case .done = outcome {
                    for command in transactions.queue?.commands ?? [] {
                        notifyUnheard(command.row, Self.keys(command), nil)
                    }
                    transactions.discard()
                }
                return outcome
            }
            guard let queue = transactions.queue, !queue.isAborted, let tier = origin.tier, case .current = view else {
                return nil
            }
            let commands = queue.commands
            guard !commands.isEmpty, commands.allSatisfy(Self.canRunAtOrigin) else { return nil }
            guard transactions.watches.isEmpty else {
                throw CommandError(
                    "ORIGIN WATCH cannot detect changes at the origin; the transaction was not executed")
            }
            for command in commands { try checkQueued(command) }
            let keys = Set(commands.flatMap(Self.keys))
            let words = commands.map { command in
                let words = (0..<command.count).map { Array(command[$0]) }
                // Send the script's source: in a transaction, a missing script would be reported too late.
                return OriginCommand.wordsWithText(command.row, words, server.scripts) ?? words
            }
            let hasScripts = commands.contains { $0.row.flags.contains(.runsScript) }
            send(Array(keys), tier) { then in
                tier.perform(transaction: words, hasScripts: hasScripts, changing: Array(keys), then: then)
            }
            return .waits(until: waitEnd)
        } catch {
            transactions.discard()
            throw error
        }
    }

    private static func keys(_ command: QueuedCommand) -> [[UInt8]] {
        command.row.keyIndices(count: command.count) { command[$0] }.map { Array(command[$0]) }
    }

    private static func canRunAtOrigin(_ command: QueuedCommand) -> Bool {
        let row = command.row
        // Database numbers mean other databases at the origin than in the larder.
        if row == .move || row == .copy && command.count > 4 { return false }
        return row.group != .larder && !row.flags.contains(.admin) && !keys(command).isEmpty
    }
}
