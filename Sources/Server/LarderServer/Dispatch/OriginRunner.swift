import LarderCommandCatalog
import LarderEngine
import LarderOriginClients
import LarderOutboxes
import LarderPlatform
import LarderRESP

/// Runs the commands of a session in a database with an origin. Requests values that are not known to be current, and
/// sends writes to the origin. The command waits for the origin's reply, and then runs again.
///
/// The state of the current command is in ``OriginAccess``, so creating a runner costs nothing. Used only by the
/// session's owner.
struct OriginRunner {
    let session: Session
    private var server: ServerState { session.server }

    /// Runs a command of a session for which ``OriginAccess/needsCheck`` is true.
    func run(_ command: CommandSpec, _ call: inout Call) throws(CommandError) -> Outcome {
        let spec = command.metadata
        if session.transactions.execution != nil { return try command.run(&call) }
        if spec == .exec, let outcome = try executeAtOrigin() { return outcome }
        let (count, words) = (call.count, call)
        let keys = spec.keyIndices(count: count) { words.bytes($0) }
        let isScript = spec.flags.contains(.runsScript)
        guard !keys.isEmpty || isScript, !spec.flags.contains(.admin), spec != .watch else {
            return try command.run(&call)
        }
        // The origin may allow longer keys than Larder does.
        try spec.checkKeys(keys) { words.bytes($0) }
        // Send writes and scripts to the origin. Also send commands for types that Larder does not store, because the
        // origin may have values of these types.
        let isSent = spec.flags.contains(.write) || isScript || spec.absent != nil
        // If the command was already sent, reply with its result, even if the origin has been removed since.
        if isSent || session.origin.isForwarded, session.origin.call != nil {
            let outcome = try replyWithOrigins()
            if case .done = outcome { invalidateUntracked(spec, keys.map { words.array($0) }, nil) }
            return outcome
        }
        // The replay may have ended since the run began.
        if session.origin.failure != nil { session.findOrigin() }
        if let failure = session.origin.failure { throw failure }
        guard let tier = session.origin.tier else {
            if session.origin.call != nil { session.endOriginCall() }
            return try command.run(&call)
        }
        if isSent { return try send(spec, tier, keys, &call) }
        let start = session.replies.count
        if call.readsOrigin, let until = try askOrigin(tier, keys, call) { return .waits(until: until) }
        if Self.describes.contains(spec), let asked = session.origin.call, asked.failure?.isOfOtherType == true {
            // The value at the origin is not a string. Let the origin execute this command, which works for all types.
            session.origin.isForwarded = true
            asked.expect(1)
            tier.origin.perform(call.allWords, key: call.array(keys[0])) { asked.take(reply: $0) }
            return .waits(until: waitEnd)
        }
        do throws(CommandError) {
            let outcome = try command.run(&call)
            if case .waits = outcome { return outcome }
            if call.readsOrigin { invalidateUntracked(spec, keys.map { words.array($0) }, tier) }
            session.endOriginCall()
            return outcome
        } catch {
            guard let key = call.missing else { throw error }
            call.missing = nil
            try checkOriginLimit()
            session.replies.removeLast(session.replies.count - start)
            ask(tier, [key])
            return .waits(until: waitEnd)
        }
    }

    /// Throws if the command would change an outbox or its policy. DEL and UNLINK are allowed.
    static func checkMayChangeOutbox(_ spec: CommandMetadata, count: Int) throws(CommandError) {
        if spec == .policy, count > 1 { throw .inOutbox }
        if spec.flags.contains(.write), spec.keys.first > 0, spec != .del, spec != .unlink { throw .inOutbox }
    }

    // MARK: Reading

    /// Commands that describe the value of one key, and work for values of all types.
    private static let describes: Set<CommandMetadata> = [
        .type, .ttl, .pttl, .expiretime, .pexpiretime, .dump, .objectEncoding, .objectFreq, .objectIdletime,
        .objectRefcount,
    ]

    /// Requests the keys of a command from the origin, except keys whose entries are known to be current.
    /// - Returns: the end of the wait, in milliseconds of the monotonic clock; nil if the command can run.
    private func askOrigin(_ tier: OriginTier, _ keys: [Int], _ call: Call) throws(CommandError) -> Int64? {
        if let asked = session.origin.call {
            guard asked.isComplete else {
                if session.isStopping {
                    throw CommandError("ORIGIN the daemon is shutting down, and the origin has not replied yet")
                }
                try checkOriginLimit()
                if asked.takeNews() {
                    // A replica of the origin has replied. Its value may be served as a stale value.
                    session.origin.servesStale = true
                    return nil
                }
                guard server.limits.originPatience > 0, !session.origin.servesStale,
                    asked.waitedMilliseconds >= server.limits.originPatience
                else { return waitEnd }
                // The command has waited long enough. From now on, it may return a stale value.
                session.origin.servesStale = true
                return nil
            }
            return nil
        }
        let missing = keys.filter { tier.knowledge(call.bytes($0), now: call.now) == .nothing }
        if missing.isEmpty { return nil }
        ask(tier, missing.map { call.array($0) })
        return waitEnd
    }

    /// How many milliseconds a command waits beyond the time limit for the origin. The report of a timeout is sent at
    /// the limit, and takes a moment to arrive.
    private static let slackMilliseconds: Int64 = 20

    /// Throws if the command has waited too long for the origin. All its requests together have one time limit.
    private func checkOriginLimit() throws(CommandError) {
        let (limit, waited) = (server.limits.origin.call, session.origin.call?.waitedMilliseconds ?? 0)
        guard waited >= Int64(limit) + Self.slackMilliseconds else { return }
        throw CommandError(.timedOut(milliseconds: limit))
    }

    /// The time at which a waiting command runs again without a reply, in milliseconds of the monotonic clock.
    private var waitEnd: Int64 {
        let waited = session.origin.call?.waitedMilliseconds ?? 0
        let patience = server.limits.originPatience
        var wait = Int64(server.limits.origin.call) + Self.slackMilliseconds + 1
        if patience > 0, !session.origin.servesStale, waited < patience { wait = min(wait, patience) }
        return session.clock.monotonic() + max(1, wait - waited)
    }

    private func ask(_ tier: OriginTier, _ keys: [[UInt8]]) {
        let call = beginCall()
        let keys = Array(Set(keys))
        call.expect(keys.count)
        tier.ask(keys, for: call)
    }

    private func beginCall() -> OriginCall {
        if let call = session.origin.call { return call }
        let call = OriginCall(startedAt: MonotonicClock.nanoseconds(), wakeUp: session.waits.wakeUp)
        session.origin.call = call
        return call
    }

    // MARK: Writing

    /// Sends a command to the origin, or queues its writes in the outbox if that is possible.
    private func send(
        _ spec: CommandMetadata, _ tier: OriginTier, _ keys: [Int], _ call: inout Call
    ) throws(CommandError) -> Outcome {
        let write = try OriginCommand(spec, keys, call)
        if let outbox = tier.outbox, write.canWait {
            session.replies.write(try call.writeBehind(write, tier, outbox))
            return .done
        }
        send(write.keys, tier) { then in write.send(to: tier, then: then) }
        return .waits(until: waitEnd)
    }

    /// Sends a command to the origin. If writes of its keys are queued in the outbox, first waits for their delivery.
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
                        "queued writes of the command's keys were not delivered to the origin within \(limit) ms: the "
                            + "command was not executed")))
        }
    }

    /// If the origin's reply has arrived, replies with it; otherwise, continues to wait.
    private func replyWithOrigins() throws(CommandError) -> Outcome {
        if let reply = session.origin.call?.takeReply() {
            session.endOriginCall()
            switch reply {
            case .success(let value): session.replies.write(value)
            case .failure(let error): throw CommandError(error)
            }
            return .done
        }
        if session.isStopping {
            throw CommandError(
                "ORIGIN the daemon is shutting down; the origin may or may not have executed the command")
        }
        try checkOriginLimit()
        return .waits(until: waitEnd)
    }

    // MARK: Client-side caching

    /// For a client that tracks keys: sends an invalidation after the reply for each key whose next change would not be
    /// reported. The client then keeps no copy of the value. This is necessary if the key has changed during the read,
    /// so that its invalidation came before the reply, or if the origin sends no invalidations for the key.
    /// - Parameter tier: the tier that served the reads; nil if the origin itself executed the command.
    private func invalidateUntracked(
        _ spec: CommandMetadata, _ keys: @autoclosure () -> [[UInt8]], _ tier: OriginTier?
    ) {
        guard let client = session.tracking.client, spec.flags.contains(.readonly),
            client.isBroadcast || session.tracking.tracksReads
        else { return }
        let unheard = keys().filter { key in tier.map { !isTrackedAtOrigin(key, $0) } ?? true }
        if !unheard.isEmpty { server.tracking.notify(unheard, client, in: session.database.name) }
    }

    /// Whether the origin will report the next change of a key. Call this after recording the key as tracked. In the
    /// reverse order, a change between the two steps could be missed.
    private func isTrackedAtOrigin(_ key: [UInt8], _ tier: OriginTier) -> Bool {
        switch session.origin.call?.reading(key) {
        case .success(let reading)?: tier.isKnown(reading, of: key)
        case .failure?: false
        case nil: key.withUnsafeBytes { tier.knowledge($0, now: session.clock.now()) != .nothing }
        }
    }

    // MARK: Transactions

    /// Sends a transaction to the origin if the origin can run it. For this, each command must have keys, and must use
    /// the selected database.
    /// - Returns: nil for all other transactions. These run here, and their commands fail if they need the origin.
    private func executeAtOrigin() throws(CommandError) -> Outcome? {
        do throws(CommandError) {
            if session.origin.call != nil {
                let outcome = try replyWithOrigins()
                if case .done = outcome {
                    for command in session.transactions.queue?.commands ?? [] {
                        invalidateUntracked(command.row, Self.keys(command), nil)
                    }
                    session.transactions.discard()
                }
                return outcome
            }
            guard let queue = session.transactions.queue, !queue.isAborted, let tier = session.origin.tier,
                session.seesCurrent
            else { return nil }
            let commands = queue.commands
            guard !commands.isEmpty, commands.allSatisfy(Self.canRunAtOrigin) else { return nil }
            guard session.transactions.watches.isEmpty else {
                throw CommandError(
                    "ORIGIN the transaction was not executed, because WATCH cannot detect changes at the origin")
            }
            for command in commands { try session.rights.checkAgain(command, in: session.database) }
            let keys = Set(commands.flatMap(Self.keys))
            let words = commands.map { command in
                let words = (0..<command.count).map { Array(command[$0]) }
                // Send scripts with their source. If the origin did not know a digest, the whole transaction would have
                // to fail.
                return OriginCommand.wordsWithText(command.row, words, server.scripts) ?? words
            }
            let hasScripts = commands.contains { $0.row.flags.contains(.runsScript) }
            send(Array(keys), tier) { then in
                tier.perform(transaction: words, hasScripts: hasScripts, changing: Array(keys), then: then)
            }
            return .waits(until: waitEnd)
        } catch {
            session.transactions.discard()
            throw error
        }
    }

    private static func keys(_ command: QueuedCommand) -> [[UInt8]] {
        command.row.keyIndices(count: command.count) { command[$0] }.map { Array(command[$0]) }
    }

    private static func canRunAtOrigin(_ command: QueuedCommand) -> Bool {
        let row = command.row
        // A database number in the command means another database at the origin than in this larder.
        if row == .move || row == .copy && command.count > 4 { return false }
        return row.group != .larder && !row.flags.contains(.admin) && !keys(command).isEmpty
    }
}
