import LarderEngine
import RESP

extension CommandTable {
    static let stringCommands: [CommandSpec] = [
        CommandSpec(
            "get", arity: 2, [.readonly, .fast], keys: .one, group: "string", since: "1.0.0", complexity: "O(1)",
            syntax: "key", summary: "Returns the value of a key.", reply: "bulk; null when there is no fresh entry",
            run: StringCommands.get),
        CommandSpec(
            "set", arity: -3, .write, keys: .one, group: "string", since: "1.0.0", complexity: "O(1)",
            syntax: "key value [NX | XX] [GET] [EX seconds | PX milliseconds | EXAT unix-time-seconds "
                + "| PXAT unix-time-milliseconds | KEEPTTL | POLICY name|seconds] [CODEC raw|json|plist|custom]",
            summary: "Stores a value, and says how long it stays fresh if not as the database's policy says.",
            reply: "OK; null when NX or XX forbade it; with GET the former value or null", run: StringCommands.set),
        CommandSpec(
            "getdel", arity: 2, [.write, .fast], keys: .one, group: "string", since: "6.2.0", complexity: "O(1)",
            syntax: "key", summary: "Returns the value of a key and removes the key.",
            reply: "bulk; null when there is no fresh entry", run: StringCommands.getdel),
        CommandSpec(
            "mget", arity: -2, [.readonly, .fast], keys: .all, group: "string", since: "1.0.0", complexity: "O(N)",
            syntax: "key [key ...]", summary: "Returns the values of several keys at one instant.",
            reply: "array of bulk or null", run: StringCommands.mget),
        CommandSpec(
            "mset", arity: -3, .write, keys: .pairs, group: "string", since: "1.0.1", complexity: "O(N)",
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
        let record = try call.read(try call.key(1))
        call.session.reply(record)
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
        let keys = try call.keys(from: 1, step: 2)
        let values = (0..<keys.count).map { call.bytes(2 * $0 + 2) }
        try call.update(keys, loading: false) { update in
            for (index, value) in values.enumerated() { update.put(index, payload: value) }
        }
        call.session.replies.simple("OK")
        return .done
    }

    @Sendable static func strlen(_ call: inout Call) throws(CommandError) -> Outcome {
        let record = try call.read(try call.key(1))
        call.session.replies.integer(record?.payloadCount ?? 0)
        return .done
    }

    @Sendable static func set(_ call: inout Call) throws(CommandError) -> Outcome {
        let options = try SetOptions(call)
        let key = try call.key(1)
        let value = call.bytes(2)
        guard options.needsCurrent else {
            try call.update([key], loading: false) { update in
                if let rule = options.rule(nil, now: update.now) {
                    update.put(0, payload: value, rule: rule, codec: options.codec)
                } else {
                    update.remove(0)
                }
            }
            call.session.replies.simple("OK")
            return .done
        }
        let (former, isStored) = try call.update([key], loading: true) { update -> (Record?, Bool) in
            let former = update.current(0)
            if options.condition == .absent && former != nil || options.condition == .present && former == nil {
                return (former, false)
            }
            if let rule = options.rule(former, now: update.now) {
                update.put(0, payload: value, rule: rule, codec: options.codec)
            } else if former != nil {
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

/// What stands behind `SET key value`.
struct SetOptions {
    enum Condition { case none, absent, present }
    enum Lifetime {
        case governed
        /// An instant in milliseconds since 1970.
        case until(Int64)
        case policy(UpdatePolicy)
        case keep
    }

    private(set) var condition = Condition.none
    private(set) var returnsFormer = false
    private(set) var lifetime: Lifetime?
    private(set) var codec = Codec.raw
    private var hasCodec = false

    var needsCurrent: Bool {
        if case .keep = lifetime { return true }
        return condition != .none || returnsFormer
    }

    /// The deadline rule of the new entry; nil when its deadline has passed already, so that nothing is to be stored.
    func rule(_ former: Record?, now: Int64) -> DeadlineRule? {
        switch lifetime ?? .governed {
        case .governed: .governed
        case .until(let deadline): deadline > now ? .own(deadline) : nil
        case .policy(let policy): .policy(policy, now: now)
        case .keep: former?.header.rule ?? .governed
        }
    }

    init(_ call: Call) throws(CommandError) {
        var index = 3
        while index < call.count {
            if call.isWord(index, "NX") {
                try setCondition(.absent)
            } else if call.isWord(index, "XX") {
                try setCondition(.present)
            } else if call.isWord(index, "GET") {
                returnsFormer = true
            } else if call.isWord(index, "KEEPTTL") {
                try setLifetime(.keep)
            } else {
                index += 1
                guard index < call.count else { throw .syntax }
                try takeOption(call, index - 1)
            }
            index += 1
        }
    }

    private mutating func setCondition(_ new: Condition) throws(CommandError) {
        guard condition == .none || condition == new else { throw .syntax }
        condition = new
    }

    private mutating func setLifetime(_ new: Lifetime) throws(CommandError) {
        if let lifetime {
            guard case (.keep, .keep) = (lifetime, new) else { throw .syntax }
        }
        lifetime = new
    }

    /// An option at `index` with a value behind it.
    private mutating func takeOption(_ call: Call, _ index: Int) throws(CommandError) {
        if call.isWord(index, "CODEC") {
            guard !hasCodec, let named = Codec(name: call.text(index + 1)) else {
                throw CommandError("ERR the codec is one of raw, json, plist, custom")
            }
            codec = named
            hasCodec = true
            return
        }
        if call.isWord(index, "POLICY") {
            guard let policy = UpdatePolicy(call.text(index + 1)) else { throw LarderCommands.badPolicy }
            return try setLifetime(.policy(policy))
        }
        guard let form = ExpiryForm(call, index) else { throw .syntax }
        // Redis notices a second lifetime before it reads the number.
        guard lifetime == nil else { throw .syntax }
        let deadline = try form.deadline(try call.integer(index + 1), now: call.now, command: "set", positive: true)
        try setLifetime(.until(deadline))
    }
}

/// How a number says when an entry expires.
struct ExpiryForm {
    let isSeconds: Bool
    let isAbsolute: Bool

    static let seconds = ExpiryForm(isSeconds: true, isAbsolute: false)
    static let milliseconds = ExpiryForm(isSeconds: false, isAbsolute: false)
    static let unixSeconds = ExpiryForm(isSeconds: true, isAbsolute: true)
    static let unixMilliseconds = ExpiryForm(isSeconds: false, isAbsolute: true)

    /// The deadline in milliseconds since 1970.
    /// - Parameter positive: whether zero and negative numbers are an error, as they are for SET.
    func deadline(_ value: Int64, now: Int64, command: String, positive: Bool) throws(CommandError) -> Int64 {
        let invalid = CommandError("ERR invalid expire time in '\(command)' command")
        if positive, value <= 0 { throw invalid }
        let (scaled, overflow) = isSeconds ? value.multipliedReportingOverflow(by: 1000) : (value, false)
        if overflow { throw invalid }
        if isAbsolute { return scaled }
        let (sum, carry) = scaled.addingReportingOverflow(now)
        if carry { throw invalid }
        return sum
    }
}

extension ExpiryForm {
    init?(_ call: Call, _ index: Int) {
        if call.isWord(index, "EX") {
            self = .seconds
        } else if call.isWord(index, "PX") {
            self = .milliseconds
        } else if call.isWord(index, "EXAT") {
            self = .unixSeconds
        } else if call.isWord(index, "PXAT") {
            self = .unixMilliseconds
        } else {
            return nil
        }
    }
}
