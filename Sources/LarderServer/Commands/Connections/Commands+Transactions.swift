import LarderEngine
import RESP

extension CommandTable {
    static let transactionCommands: [CommandSpec] = [
        CommandSpec(
            "multi", arity: 1, [.fast, .loading, .stale, .noScript, .allowBusy, .inMulti], group: "transactions",
            since: "1.2.0", complexity: "O(1)",
            summary: "From here to EXEC commands are queued instead of run.", reply: "OK",
            run: TransactionCommands.multi),
        CommandSpec(
            "exec", arity: 1, [.loading, .stale, .noScript, .skipSlowlog, .inMulti], group: "transactions",
            since: "1.2.0", complexity: "that of the queued commands",
            summary: "Runs the queued commands at one instant, isolated from everybody else, as one commit unit.",
            reply: "array of the commands' replies; null when a watched key was changed", run: TransactionCommands.exec),
        CommandSpec(
            "discard", arity: 1, [.fast, .loading, .stale, .noScript, .allowBusy, .inMulti], group: "transactions",
            since: "2.0.0", complexity: "O(N) with N the queued commands",
            summary: "Forgets the queued commands and the watched keys.", reply: "OK",
            run: TransactionCommands.discard),
        CommandSpec(
            "watch", arity: -2, [.fast, .loading, .stale, .noScript, .allowBusy, .inMulti, .opens], keys: .all,
            group: "transactions", since: "2.2.0", complexity: "O(N)", syntax: "key [key ...]",
            summary: "Has the next EXEC do nothing if one of the keys is changed until then.", reply: "OK",
            run: TransactionCommands.watch),
        CommandSpec(
            "unwatch", arity: 1, [.fast, .loading, .stale, .noScript, .allowBusy], group: "transactions",
            since: "2.2.0", complexity: "O(N) with N the watched keys", summary: "Forgets the watched keys.",
            reply: "OK", run: TransactionCommands.unwatch),
    ]
}

enum TransactionCommands {
    @Sendable static func multi(_ call: inout Call) throws(CommandError) -> Outcome {
        let session = call.session
        guard session.transaction == nil else { throw CommandError("ERR MULTI calls can not be nested") }
        session.transaction = TransactionQueue()
        session.replies.simple("OK")
        return .done
    }

    @Sendable static func exec(_ call: inout Call) throws(CommandError) -> Outcome {
        try call.session.beginExecution()
        return .done
    }

    @Sendable static func discard(_ call: inout Call) throws(CommandError) -> Outcome {
        guard call.session.transaction != nil else { throw CommandError("ERR DISCARD without MULTI") }
        call.session.discardTransaction()
        call.session.replies.simple("OK")
        return .done
    }

    @Sendable static func watch(_ call: inout Call) throws(CommandError) -> Outcome {
        let session = call.session
        guard session.transaction == nil else { throw CommandError("ERR WATCH inside MULTI is not allowed") }
        let keys = try call.keys(from: 1)
        guard keys.count <= call.server.limits.watchedKeysMax - session.watchCount else {
            throw CommandError(
                "ERR \(call.server.limits.watchedKeysMax) keys are watched at most (--max-watched-keys)")
        }
        let isDone: Bool
        do throws(LarderError) {
            isDone = try session.watch(keys, now: call.now, mayBlock: call.mayBlock)
        } catch {
            throw CommandError(error)
        }
        guard isDone else { throw call.cold() }
        session.replies.simple("OK")
        return .done
    }

    @Sendable static func unwatch(_ call: inout Call) throws(CommandError) -> Outcome {
        call.session.unwatch()
        call.session.replies.simple("OK")
        return .done
    }
}
