import LarderCommandCatalog
import LarderEngine
import LarderRESP

extension CommandTable {
    static let stringPlanners: Planners = [
        .get: { _ in .value(1) },
        .set: { words throws(CommandError) in .store(try SetOptions(words)) },
        .getdel: StringCommands.getdel,
        .mget: { _ in .values },
        .mset: StringCommands.mset,
        .strlen: { _ in .facts(1, .counted) { facts, _, replies in replies.integer(facts?.payloadCount ?? 0) } },
    ]
}

enum StringCommands {
    @Sendable static func getdel(_ words: CallWords) throws(CommandError) -> EntryPlan {
        try .change(words) { update, _ in
            let record = update.readRecord(0)
            update.removeStored(0)
            return .record(record)
        }
    }

    @Sendable static func mset(_ words: CallWords) throws(CommandError) -> EntryPlan {
        guard words.count % 2 == 1 else { throw .arity("mset") }
        let keys = try words.keys(from: 1, step: 2)
        return .change(
            ChangePlan(keys: keys, loading: .none) { update, _ in
                for index in keys.indices { update.put(index, payload: words.bytes(2 * index + 2)) }
                return .ok
            })
    }
}
