import LarderCommandCatalog
import LarderEngine
import LarderRESP

extension CommandTable {
    static let transactionCommands: Handlers = [
        .multi: multi,
        .exec: { call throws(CommandError) in
            try call.session.transactions.execute()
            return .done
        },
        .discard: discard,
        .watch: watch,
        .unwatch: { call in
            call.session.transactions.unwatch()
            return call.ok()
        },
    ]

    @Sendable private static func multi(_ call: inout Call) throws(CommandError) -> Outcome {
        let session = call.session
        guard session.transactions.queue == nil else { throw CommandError("ERR MULTI calls can not be nested") }
        session.transactions.queue = TransactionQueue()
        return call.ok()
    }

    @Sendable private static func discard(_ call: inout Call) throws(CommandError) -> Outcome {
        guard call.session.transactions.queue != nil else { throw CommandError("ERR DISCARD without MULTI") }
        call.session.transactions.discard()
        return call.ok()
    }

    @Sendable private static func watch(_ call: inout Call) throws(CommandError) -> Outcome {
        let session = call.session
        guard session.transactions.queue == nil else { throw CommandError("ERR WATCH inside MULTI is not allowed") }
        let keys = try call.keys(from: 1)
        guard keys.count <= call.server.limits.watchedKeysMax - session.transactions.watches.count else {
            throw CommandError(
                "ERR the limit of \(call.server.limits.watchedKeysMax) watched keys is reached (--max-watched-keys)")
        }
        let isDone = try CommandError.wrap(
            session.transactions.watch(keys, in: call.database, now: call.now, call.access))
        guard isDone else { throw call.cold() }
        return call.ok()
    }
}
