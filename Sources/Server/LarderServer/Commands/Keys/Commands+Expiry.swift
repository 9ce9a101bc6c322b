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
    /// Replies with the remaining lifetime of an entry.
    static func remaining(_ call: inout Call, inSeconds: Bool) throws(CommandError) -> Outcome {
        try deadline(&call) { deadline, now in
            // Redis rounds to the nearest second.
            inSeconds ? (deadline - now + 500) / 1000 : deadline - now
        }
    }

    /// Replies with the expiry time of an entry, by the wall clock.
    static func instant(_ call: inout Call, inSeconds: Bool) throws(CommandError) -> Outcome {
        let ahead = call.timeAhead
        return try deadline(&call) { deadline, _ in
            let deadline = max(0, deadline - ahead)
            // Rounded to the nearest second, without an addition that could overflow.
            return inSeconds ? deadline / 1000 + (deadline % 1000 >= 500 ? 1 : 0) : deadline
        }
    }

    private struct Condition: OptionSet {
        let rawValue: Int
        static let absent = Condition(rawValue: 1)
        static let present = Condition(rawValue: 2)
        static let greater = Condition(rawValue: 4)
        static let less = Condition(rawValue: 8)
    }

    static func expire(_ call: inout Call, _ form: ExpiryForm) throws(CommandError) -> Outcome {
        let condition = try condition(call)
        let value = try call.integer(2)
        let deadline = try form.deadline(value, call, positive: false)
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

    /// As in Redis, an entry without a deadline is treated as having the latest possible one.
    private static func allows(_ condition: Condition, _ new: Int64, _ current: Int64?) -> Bool {
        if condition.contains(.absent), current != nil { return false }
        if condition.contains(.present), current == nil { return false }
        if condition.contains(.greater) {
            guard let current, new > current else { return false }
        }
        if condition.contains(.less), let current, new >= current { return false }
        return true
    }

    private static func deadline(_ call: inout Call, _ answer: (_ deadline: Int64, _ now: Int64) -> Int64)
        throws(CommandError) -> Outcome
    {
        guard let facts = try call.facts(1) else {
            call.session.replies.integer(-2)
            return .done
        }
        // Do not return a negative number if the policy has changed since the entry was found fresh.
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
