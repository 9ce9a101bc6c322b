import LarderCommandCatalog
import LarderEngine
import LarderRESP

extension CommandTable {
    static let stringCommands: Handlers = [
        .get: StringCommands.get,
        .set: StringCommands.set,
        .getdel: StringCommands.getdel,
        .mget: StringCommands.mget,
        .mset: StringCommands.mset,
        .strlen: StringCommands.strlen,
    ]
}

enum StringCommands {
    @Sendable static func get(_ call: inout Call) throws(CommandError) -> Outcome {
        try call.replyWithValue(1)
        return .done
    }

    @Sendable static func getdel(_ call: inout Call) throws(CommandError) -> Outcome {
        let record = try call.update([try call.key(1)], loading: true) { update -> Record? in
            let record = update.readRecord(0)
            update.removeStored(0)
            return record
        }
        call.session.reply(record)
        return .done
    }

    @Sendable static func mget(_ call: inout Call) throws(CommandError) -> Outcome {
        try call.replyWithValues(try call.keys(from: 1))
        return .done
    }

    @Sendable static func mset(_ call: inout Call) throws(CommandError) -> Outcome {
        guard call.count % 2 == 1 else { throw .arity("mset") }
        try call.putPairs(from: 1)
        return call.ok()
    }

    @Sendable static func strlen(_ call: inout Call) throws(CommandError) -> Outcome {
        let facts = try call.facts(1)
        return call.reply(facts?.payloadCount ?? 0)
    }

    @Sendable static func set(_ call: inout Call) throws(CommandError) -> Outcome {
        let options = try SetOptions(call)
        let (previous, isStored) = try store(&call, [try call.key(1)], [call.bytes(2)], options)
        if options.returnsPrevious {
            call.session.reply(previous)
        } else if isStored {
            call.session.replies.simple("OK")
        } else {
            call.session.replies.null()
        }
        return .done
    }

    /// Stores one value for each key, for SET and its variants.
    /// - Returns: the previous entry of the first key, if the options ask for it; and whether the values were stored.
    static func store(
        _ call: inout Call, _ keys: [Key], _ values: [UnsafeRawBufferPointer], _ options: SetOptions
    ) throws(CommandError) -> (previous: Record?, isStored: Bool) {
        var long: LargeValue?
        if keys.count == 1, !options.hasTags, let rule = options.rule(nil, call.rules, now: call.now) {
            long = try call.stage(values[0], keys[0], rule: rule, grace: options.grace)
        }
        let loading = options.loading
        return try call.update(keys, loading: loading != .none, headersOnly: loading == .headers) {
            [long] update -> (Record?, Bool) in
            let previous = options.returnsPrevious ? update.readRecord(0) : nil
            return (previous, options.store(values, long: long, in: update))
        }
    }
}
