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
            let record = update.current(0)
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
        call.session.replies.simple("OK")
        return .done
    }

    @Sendable static func strlen(_ call: inout Call) throws(CommandError) -> Outcome {
        let facts = try call.facts(1)
        call.session.replies.integer(facts?.payloadCount ?? 0)
        return .done
    }

    @Sendable static func set(_ call: inout Call) throws(CommandError) -> Outcome {
        let options = try SetOptions(call)
        let key = try call.key(1)
        let value = call.bytes(2)
        let long = try options.rule(nil, call.rules, now: call.now).flatMap { rule throws(CommandError) in
            options.hasTags ? nil : try call.stage(value, key, rule: rule, grace: options.grace)
        }
        guard options.needsCurrent else {
            let isStored = try call.update([key], loading: false) { update -> Bool in
                guard options.holdsLeases(&update) else { return false }
                if let rule = options.rule(nil, update.rules, now: update.now) {
                    update.put(
                        0, payload: value, long: long, rule: rule, grace: options.grace(nil), codec: options.codec,
                        tags: options.tags(nil))
                } else {
                    update.remove(0)
                }
                return true
            }
            if isStored { call.session.replies.simple("OK") } else { call.session.replies.null() }
            return .done
        }
        let (previous, isStored) = try call.update([key], loading: true) { update -> (Record?, Bool) in
            let previous = update.current(0)
            guard options.condition.allows(previous), options.holdsLeases(&update) else { return (previous, false) }
            if options.keepsDeadline { update.origin.tag = WriteTag.setKeeping.rawValue }
            let kept = options.kept(update, 0)
            if let rule = options.rule(kept, update.rules, now: update.now) {
                update.put(
                    0, payload: value, long: long, rule: rule, grace: options.grace(kept), codec: options.codec,
                    tags: options.tags(kept))
            } else {
                update.remove(0)
            }
            return (previous, true)
        }
        if options.returnsPrevious {
            call.session.reply(previous)
        } else if isStored {
            call.session.replies.simple("OK")
        } else {
            call.session.replies.null()
        }
        return .done
    }
}
