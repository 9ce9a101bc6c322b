import LarderEngine
import RESP

extension CommandTable {
    static let expiryCommands: [CommandSpec] = [
        expiry("expire", "1.0.0", "key seconds", "in so many seconds", .seconds),
        expiry("pexpire", "2.6.0", "key milliseconds", "in so many milliseconds", .milliseconds),
        expiry("expireat", "1.2.0", "key unix-time-seconds", "at an instant in seconds since 1970", .unixSeconds),
        expiry(
            "pexpireat", "2.6.0", "key unix-time-milliseconds", "at an instant in milliseconds since 1970",
            .unixMilliseconds),
        remaining("ttl", "1.0.0", "Returns how long an entry stays fresh, in seconds.", seconds: true),
        remaining("pttl", "2.6.0", "Returns how long an entry stays fresh, in milliseconds.", seconds: false),
        deadline("expiretime", "7.0.0", "Returns an entry's deadline in seconds since 1970.", seconds: true),
        deadline("pexpiretime", "7.0.0", "Returns an entry's deadline in milliseconds since 1970.", seconds: false),
        CommandSpec(
            "persist", arity: 2, [.write, .fast], keys: .one, group: "generic", since: "2.2.0", complexity: "O(1)",
            syntax: "key", summary: "Makes an entry stay for good, whatever the database's policy says.",
            reply: "1; 0 when there is no fresh entry or it has no deadline", run: ExpiryCommands.persist),
    ]

    private static func expiry(_ name: String, _ since: String, _ syntax: String, _ when: String, _ form: ExpiryForm)
        -> CommandSpec
    {
        CommandSpec(
            name, arity: -3, [.write, .fast], keys: .one, group: "generic", since: since, complexity: "O(1)",
            syntax: syntax + " [NX | XX | GT | LT]", summary: "Gives an entry a deadline of its own, \(when).",
            reply: "1; 0 when there is no fresh entry or the option forbade it"
        ) { call throws(CommandError) in try ExpiryCommands.expire(&call, name, form) }
    }

    private static func remaining(_ name: String, _ since: String, _ summary: String, seconds: Bool) -> CommandSpec {
        CommandSpec(
            name, arity: 2, [.readonly, .fast], keys: .one, group: "generic", since: since, complexity: "O(1)",
            syntax: "key", summary: summary,
            reply: "integer; -1 when it does not expire, -2 when there is no fresh entry"
        ) { call throws(CommandError) in
            try ExpiryCommands.deadline(&call) { deadline, now in
                // Redis rounds to the nearest second.
                seconds ? (deadline - now + 500) / 1000 : deadline - now
            }
        }
    }

    private static func deadline(_ name: String, _ since: String, _ summary: String, seconds: Bool) -> CommandSpec {
        CommandSpec(
            name, arity: 2, [.readonly, .fast], keys: .one, group: "generic", since: since, complexity: "O(1)",
            syntax: "key", summary: summary,
            reply: "integer; -1 when it does not expire, -2 when there is no fresh entry"
        ) { call throws(CommandError) in
            let ahead = call.timeAhead
            return try ExpiryCommands.deadline(&call) { deadline, _ in
                let deadline = max(0, deadline - ahead)
                // To the nearest second too; nothing is added to what may be the largest number.
                return seconds ? deadline / 1000 + (deadline % 1000 >= 500 ? 1 : 0) : deadline
            }
        }
    }
}

enum ExpiryCommands {
    private struct Condition: OptionSet {
        let rawValue: Int
        static let absent = Condition(rawValue: 1)
        static let present = Condition(rawValue: 2)
        static let greater = Condition(rawValue: 4)
        static let less = Condition(rawValue: 8)
    }

    static func expire(_ call: inout Call, _ name: String, _ form: ExpiryForm) throws(CommandError) -> Outcome {
        let condition = try condition(call)
        let value = try call.integer(2)
        let deadline = try form.deadline(value, call, command: name, positive: false)
        let changed = try call.update([try call.key(1)], loading: true) { update -> Bool in
            guard let record = update.current(0) else { return false }
            guard allows(condition, deadline, update.rules.deadline(record.header)) else { return false }
            if deadline <= update.now {
                update.remove(0)
            } else {
                update.put(0, record.with(rule: .own(deadline)))
            }
            return true
        }
        call.session.replies.integer(changed ? 1 : 0)
        return .done
    }

    private static func condition(_ call: Call) throws(CommandError) -> Condition {
        var condition: Condition = []
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

    /// An entry that never expires has a deadline later than any.
    private static func allows(_ condition: Condition, _ new: Int64, _ current: Int64?) -> Bool {
        if condition.contains(.absent), current != nil { return false }
        if condition.contains(.present), current == nil { return false }
        if condition.contains(.greater) {
            guard let current, new > current else { return false }
        }
        if condition.contains(.less), let current, new >= current { return false }
        return true
    }

    static func deadline(_ call: inout Call, _ answer: (_ deadline: Int64, _ now: Int64) -> Int64)
        throws(CommandError) -> Outcome
    {
        guard let facts = try call.facts(1) else {
            call.session.replies.integer(-2)
            return .done
        }
        // Never negative: the policy may have become another one since the entry was found fresh.
        let deadline = call.rules.deadline(facts.header).map { max($0, call.now) }
        call.session.replies.integer(deadline.map { answer($0, call.now) } ?? -1)
        return .done
    }

    @Sendable static func persist(_ call: inout Call) throws(CommandError) -> Outcome {
        let changed = try call.update([try call.key(1)], loading: true) { $0.persist(0) }
        call.session.replies.integer(changed ? 1 : 0)
        return .done
    }
}
