import LarderCommandCatalog
import LarderEngine
import LarderRESP

extension CommandTable {
    static let stringPlanners: Planners = [
        .get: { _ in .value(1) },
        .set: StringCommands.set,
        .getdel: StringCommands.getdel,
        .mget: { words throws(CommandError) in .values(try words.keys(from: 1)) },
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

    @Sendable static func set(_ words: CallWords) throws(CommandError) -> EntryPlan {
        let options = try SetOptions(words)
        return store([try words.key(1)], [words.bytes(2)], options, words) { previous, isStored in
            options.returnsPrevious ? .record(previous) : isStored ? .ok : .null
        }
    }

    /// Stores one value for each key, for SET and its variants.
    /// - Parameter answer: called with the previous entry of the first key, and with whether the values were stored.
    ///   The entry is nil unless the options request it.
    static func store(
        _ keys: [Key], _ values: [UnsafeRawBufferPointer], _ options: SetOptions, _ words: CallWords,
        _ answer: @escaping (Record?, Bool) -> ChangeReply
    ) -> EntryPlan {
        var staged: StagedValue?
        if keys.count == 1, !options.hasTags {
            staged = StagedValue(values[0], grace: options.grace) { options.rule(nil, $0, now: words.now) }
        }
        return .change(
            ChangePlan(keys: keys, loading: options.loading, staged: staged) { update, context in
                let previous = options.returnsPrevious ? update.readRecord(0) : nil
                return answer(previous, options.store(values, long: context.long, in: update))
            })
    }
}
