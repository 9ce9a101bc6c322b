import LarderCommandCatalog
import LarderEngine
import LarderRESP

extension CommandTable {
    static let expiryCommands: Handlers = [
        .expire: { call throws(CommandError) in try ExpiryCommands.expire(&call, .seconds) },
        .pexpire: { call throws(CommandError) in try ExpiryCommands.expire(&call, .milliseconds) },
        .expireat: { call throws(CommandError) in try ExpiryCommands.expire(&call, .unixSeconds) },
        .pexpireat: { call throws(CommandError) in try ExpiryCommands.expire(&call, .unixMilliseconds) },
        .ttl: { call throws(CommandError) in try ExpiryCommands.remaining(&call, inSeconds: true) },
        .pttl: { call throws(CommandError) in try ExpiryCommands.remaining(&call, inSeconds: false) },
        .expiretime: { call throws(CommandError) in try ExpiryCommands.instant(&call, inSeconds: true) },
        .pexpiretime: { call throws(CommandError) in try ExpiryCommands.instant(&call, inSeconds: false) },
        .persist: ExpiryCommands.persist,
    ]
}

enum ExpiryCommands {
    /// Replies with the remaining lifetime of an entry, in seconds or milliseconds.
    static func remaining(_ call: inout Call, inSeconds: Bool) throws(CommandError) -> Outcome {
        try deadline(&call) { EntryChanges.remaining($0, now: $1, inSeconds: inSeconds) }
    }

    /// Replies with the time at which an entry expires, as seconds or milliseconds since 1970 by the wall clock.
    static func instant(_ call: inout Call, inSeconds: Bool) throws(CommandError) -> Outcome {
        let ahead = call.timeAhead
        return try deadline(&call) { deadline, now in
            guard let deadline else { return EntryChanges.noDeadline }
            let instant = max(0, max(deadline, now) - ahead)
            // Round to the nearest second. Adding 500 ms first could overflow.
            return inSeconds ? instant / 1000 + (instant % 1000 >= 500 ? 1 : 0) : instant
        }
    }

    static func expire(_ call: inout Call, _ form: ExpiryForm) throws(CommandError) -> Outcome {
        let condition = try condition(call)
        let value = try call.integer(2)
        let deadline = try form.deadline(value, call, positive: false)
        let changed = try call.update([try call.key(1)], loading: true) {
            EntryChanges.expire($0, 0, at: deadline, if: condition)
        }
        return call.reply(changed ? 1 : 0)
    }

    private static func condition(_ call: Call) throws(CommandError) -> EntryChanges.Condition {
        var condition: EntryChanges.Condition = []
        for index in 3..<max(3, call.count) {
            if call.isWord(index, "NX") {
                condition.insert(.absent)
            } else if call.isWord(index, "XX") {
                condition.insert(.present)
            } else if call.isWord(index, "GT") {
                condition.insert(.greater)
            } else if call.isWord(index, "LT") {
                condition.insert(.less)
            } else {
                throw CommandError("ERR Unsupported option ", shown(call.bytes(index), 128), "")
            }
        }
        if condition.contains(.absent), condition != .absent {
            throw CommandError("ERR NX and XX, GT or LT options at the same time are not compatible")
        }
        if condition.contains(.greater), condition.contains(.less) {
            throw CommandError("ERR GT and LT options at the same time are not compatible")
        }
        return condition
    }

    private static func deadline(_ call: inout Call, _ answer: (_ deadline: Int64?, _ now: Int64) -> Int64)
        throws(CommandError) -> Outcome
    {
        guard let facts = try call.facts(1) else {
            return call.reply(EntryChanges.noEntry)
        }
        return call.reply(answer(call.rules.deadline(facts.header), call.now))
    }

    @Sendable static func persist(_ call: inout Call) throws(CommandError) -> Outcome {
        let changed = try call.update([try call.key(1)], loading: true) { $0.persist(0) }
        return call.reply(changed ? 1 : 0)
    }
}
