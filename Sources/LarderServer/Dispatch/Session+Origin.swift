import CommandCatalog
import LarderEngine
import Origins
import Platform
import RESP

/// A session whose database has an origin.
extension Session {
    /// Runs a command that may concern the origin.
    func runBeforeOrigin(_ command: CommandSpec, _ call: inout Call) throws(CommandError) -> Outcome {
        let spec = command.metadata
        if transactions.execution != nil { return try command.run(&call) }
        let (count, words) = (call.count, call)
        let keys = spec.keyIndices(count: count) { words.bytes($0) }
        let isScript = spec.flags.contains(.runsScript)
        guard !keys.isEmpty || isScript, !spec.flags.contains(.admin), spec != .watch else {
            return try command.run(&call)
        }
        if let failure = origin.failure { throw failure }
        guard let tier = origin.tier else { return try command.run(&call) }
        if spec.flags.contains(.write) || isScript {
            return try send(spec, tier, keys, &call)
        }
        let start = replies.count
        if call.readsOrigin, let until = try askOrigin(tier, keys, call) {
            return .waits(until: until)
        }
        do throws(CommandError) {
            let outcome = try command.run(&call)
            if case .waits = outcome { return outcome }
            origin.endCall()
            return outcome
        } catch {
            guard let key = call.missing else { throw error }
            call.missing = nil
            try checkOriginLimit(tier)
            replies.removeLast(replies.count - start)
            ask(tier, [key])
            return .waits(until: waitEnd)
        }
    }

    // MARK: Reading

    /// Asks for what is not known of the keys of a command.
    /// - Returns: until when the command must wait; nil if it can run.
    private func askOrigin(_ tier: OriginTier, _ keys: [Int], _ call: Call) throws(CommandError) -> Int64? {
        if let asked = origin.call {
            guard asked.isComplete else {
                if isStopping { throw CommandError("ORIGIN the daemon stops, and the origin has not answered yet") }
                try checkOriginLimit(tier)
                if asked.takeNews() {
                    // What a replica says is stale at best.
                    origin.servesStale = true
                    return nil
                }
                guard server.limits.originPatience > 0, !origin.servesStale,
                    asked.waitedMilliseconds >= server.limits.originPatience
                else { return waitEnd }
                // From here on what is stale will do, if there is any.
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

    /// The origin itself says at the limit what is wrong; that needs a moment to arrive.
    private static let slackMilliseconds: Int64 = 20

    /// A command waits no longer than the limit, however often it has asked.
    private func checkOriginLimit(_ tier: OriginTier) throws(CommandError) {
        guard let waited = origin.call?.waitedMilliseconds, waited >= Int64(tier.limits.call) + Self.slackMilliseconds
        else { return }
        throw CommandError(.timedOut(milliseconds: tier.limits.call))
    }

    /// When a command that waits for the origin is looked at again, if nothing comes.
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

    /// Has the origin run a command, and replies with what it says.
    private func send(
        _ spec: CommandMetadata, _ tier: OriginTier, _ keys: [Int], _ call: inout Call
    ) throws(CommandError) -> Outcome {
        if let asked = origin.call {
            if let reply = asked.takeReply() {
                origin.endCall()
                switch reply {
                case .success(let value): replies.write(value)
                case .failure(let error): throw CommandError(error)
                }
                return .done
            }
            if isStopping {
                throw CommandError("ORIGIN the daemon stops; the origin may have done what it was asked for")
            }
            try checkOriginLimit(tier)
            return .waits(until: waitEnd)
        }
        let write = try OriginCommand(spec, keys, call)
        if let outbox = tier.outbox, write.canWait {
            replies.write(try call.writeBehind(write, tier, outbox))
            return .done
        }
        let asked = beginCall()
        asked.expect(1)
        guard let outbox = tier.outbox else {
            write.send(to: tier) { asked.take(reply: $0) }
            return .waits(until: waitEnd)
        }
        // What was written before must be there before.
        let limit = tier.limits.call
        outbox.index.whenClear(write.keys, until: server.engine.monotonic() + Int64(limit)) { isClear in
            if isClear { return write.send(to: tier) { asked.take(reply: $0) } }
            asked.take(
                reply: .failure(
                    .unavailable(
                        "earlier writes of its keys wait for the origin, and were not there within \(limit) ms: "
                            + "nothing was done")))
        }
        return .waits(until: waitEnd)
    }
}
