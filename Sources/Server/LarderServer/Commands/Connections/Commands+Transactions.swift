import LarderCommandCatalog
import LarderEngine
import LarderRESP

extension CommandTable {
    static let transactionCommands: Handlers = [
        .multi: TransactionCommands.multi,
        .exec: TransactionCommands.exec,
        .discard: TransactionCommands.discard,
        .watch: TransactionCommands.watch,
        .unwatch: TransactionCommands.unwatch,
    ]
}

enum TransactionCommands {
    @Sendable static func multi(_ call: inout Call) throws(CommandError) -> Outcome {
        let session = call.session
        guard session.transactions.queue == nil else { throw CommandError("ERR MULTI calls can not be nested") }
        session.transactions.queue = TransactionQueue()
        session.replies.simple("OK")
        return .done
    }

    @Sendable static func exec(_ call: inout Call) throws(CommandError) -> Outcome {
        try call.session.beginExecution()
        return .done
    }

    @Sendable static func discard(_ call: inout Call) throws(CommandError) -> Outcome {
        guard call.session.transactions.queue != nil else { throw CommandError("ERR DISCARD without MULTI") }
        call.session.transactions.discard()
        call.session.replies.simple("OK")
        return .done
    }

    @Sendable static func watch(_ call: inout Call) throws(CommandError) -> Outcome {
        let session = call.session
        guard session.transactions.queue == nil else { throw CommandError("ERR WATCH inside MULTI is not allowed") }
        let keys = try call.keys(from: 1)
        guard keys.count <= call.server.limits.watchedKeysMax - session.watchCount else {
            throw CommandError(
                "ERR the limit of \(call.server.limits.watchedKeysMax) watched keys is reached (--max-watched-keys)")
        }
        let isDone: Bool
        do throws(LarderError) {
            isDone = try session.watch(keys, now: call.now, call.mayBlock ? .mayBlock : .memoryOnly)
        } catch {
            throw CommandError(error)
        }
        guard isDone else { throw call.cold() }
        session.replies.simple("OK")
        return .done
    }

    @Sendable static func unwatch(_ call: inout Call) throws(CommandError) -> Outcome {
        call.session.transactions.unwatch()
        call.session.replies.simple("OK")
        return .done
    }
}
