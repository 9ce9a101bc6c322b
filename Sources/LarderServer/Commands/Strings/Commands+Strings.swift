import LarderEngine
import RESP

extension CommandTable {
    static let stringCommands: [CommandSpec] = [
        CommandSpec(
            "get", arity: 2, [.readonly, .fast], keys: .one, group: "string", since: "1.0.0", complexity: "O(1)",
            syntax: "key", summary: "Returns the value of a key.", reply: "bulk; null when there is no fresh entry",
            run: StringCommands.get),
        CommandSpec(
            "set", arity: -3, [.write, .creates], keys: .one, group: "string", since: "1.0.0", complexity: "O(1)",
            syntax:
                "key value [NX | XX | IFEQ value | IFNE value | IFDEQ digest | IFDNE digest] [GET] [EX seconds | PX milliseconds | EXAT unix-time-seconds "
                + "| PXAT unix-time-milliseconds | KEEPTTL | POLICY name|seconds] [CODEC raw|json|plist|custom]",
            summary: "Stores a value, and says how long it stays fresh if not as the database's policy says.",
            reply: "OK; null when the condition forbade it; with GET the former value or null", run: StringCommands.set),
        CommandSpec(
            "getdel", arity: 2, [.write, .fast], keys: .one, group: "string", since: "6.2.0", complexity: "O(1)",
            syntax: "key", summary: "Returns the value of a key and removes the key.",
            reply: "bulk; null when there is no fresh entry", run: StringCommands.getdel),
        CommandSpec(
            "mget", arity: -2, [.readonly, .fast], keys: .all, group: "string", since: "1.0.0", complexity: "O(N)",
            syntax: "key [key ...]", summary: "Returns the values of several keys at one instant.",
            reply: "array of bulk or null", run: StringCommands.mget),
        CommandSpec(
            "mset", arity: -3, [.write, .creates], keys: .pairs, group: "string", since: "1.0.1", complexity: "O(N)",
            syntax: "key value [key value ...]", summary: "Stores several values, all or none.", reply: "OK",
            run: StringCommands.mset),
        CommandSpec(
            "strlen", arity: 2, [.readonly, .fast], keys: .one, group: "string", since: "2.2.0", complexity: "O(1)",
            syntax: "key", summary: "Returns the length of a value in bytes.",
            reply: "integer; 0 when there is no fresh entry", run: StringCommands.strlen),
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
            if record != nil { update.remove(0) }
            return record
        }
        call.session.reply(record)
        return .done
    }

    @Sendable static func mget(_ call: inout Call) throws(CommandError) -> Outcome {
        let records = try call.read(try call.keys(from: 1))
        call.session.replies.array(count: records.count)
        for record in records { call.session.reply(record) }
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
        let long = try options.rule(nil, now: call.now).flatMap { rule throws(CommandError) in
            try call.writeAhead(value, key, rule: rule)
        }
        guard options.needsCurrent else {
            try call.update([key], loading: false) { update in
                if let rule = options.rule(nil, now: update.now) {
                    update.put(0, payload: value, long: long, rule: rule, codec: options.codec)
                } else {
                    update.remove(0)
                }
            }
            call.session.replies.simple("OK")
            return .done
        }
        let (former, isStored) = try call.update([key], loading: true) { update -> (Record?, Bool) in
            let former = update.current(0)
            guard options.condition.allows(former) else { return (former, false) }
            if options.keepsDeadline { update.origin.tag = WriteTag.setKeeping.rawValue }
            if let rule = options.rule(former, now: update.now) {
                update.put(0, payload: value, long: long, rule: rule, codec: options.codec)
            } else {
                update.remove(0)
            }
            return (former, true)
        }
        if options.returnsFormer {
            call.session.reply(former)
        } else if isStored {
            call.session.replies.simple("OK")
        } else {
            call.session.replies.null()
        }
        return .done
    }
}
