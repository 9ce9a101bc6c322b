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
        let keys = try call.keys(from: 1, step: 2)
        let values = (0..<keys.count).map { call.bytes(2 * $0 + 2) }
        try call.update(keys, loading: false) { update in
            for (index, value) in values.enumerated() { update.put(index, payload: value) }
        }
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
    private(set) var lifetime = Lifetime.governed
    private(set) var codec = Codec.raw

    var needsCurrent: Bool {
        if case .keep = lifetime { return true }
        return condition != .none || returnsFormer
    }

    /// The deadline rule of the new entry; nil when its deadline has passed already, so that nothing is to be stored.
    func rule(_ former: Record?, now: Int64) -> DeadlineRule? {
        switch lifetime {
        case .governed: .governed
        case .until(let deadline): deadline > now ? .own(deadline) : nil
        case .policy(let policy): .policy(policy, now: now)
        case .keep: former?.header.rule ?? .governed
        }
    }

    /// Reads the words. As in Redis they must fit together before the values behind them are looked at.
    init(_ call: Call) throws(CommandError) {
        var words = Words()
        var index = 3
        while index < call.count {
            index = try words.take(call, index)
        }
        condition = words.condition
        returnsFormer = words.returnsFormer
        if let index = words.codecIndex {
            guard let named = Codec(name: call.text(index)) else {
                throw CommandError("ERR the codec is one of raw, json, plist, custom")
            }
            codec = named
        }
        switch words.lifetime {
        case nil: break
        case .keep: lifetime = .keep
        case .policy(let index):
            guard let policy = UpdatePolicy(call.text(index)) else { throw LarderCommands.badPolicy }
            lifetime = .policy(policy)
        case .expiry(let form, let index):
            let value = try call.integer(index)
            lifetime = .until(try form.deadline(value, now: call.now, command: "set", positive: true))
        }
    }

    /// Which options there are, and where their values stand.
    private struct Words {
        enum Lifetime {
            case keep
            case policy(Int)
            case expiry(ExpiryForm, Int)
        }

        var condition = Condition.none
        var returnsFormer = false
        var lifetime: Lifetime?
        var codecIndex: Int?

        /// Takes the option at `index`.
        /// - Returns: where the next one begins.
        mutating func take(_ call: Call, _ index: Int) throws(CommandError) -> Int {
            if call.isWord(index, "NX"), condition != .present {
                condition = .absent
            } else if call.isWord(index, "XX"), condition != .absent {
                condition = .present
            } else if call.isWord(index, "GET") {
                returnsFormer = true
            } else if call.isWord(index, "KEEPTTL"), lifetime == nil || isKeep {
                lifetime = .keep
            } else {
                guard index + 1 < call.count else { throw .syntax }
                try takePair(call, index)
                return index + 2
            }
            return index + 1
        }

        private var isKeep: Bool {
            if case .keep = lifetime { true } else { false }
        }

        private mutating func takePair(_ call: Call, _ index: Int) throws(CommandError) {
            if call.isWord(index, "CODEC"), codecIndex == nil {
                codecIndex = index + 1
            } else if call.isWord(index, "POLICY"), lifetime == nil {
                lifetime = .policy(index + 1)
            } else if let form = ExpiryForm(call, index), mayFollow(form) {
                lifetime = .expiry(form, index + 1)
            } else {
                throw .syntax
            }
        }

        /// As in Redis the same form may be given again, and the last one counts.
        private func mayFollow(_ form: ExpiryForm) -> Bool {
            switch lifetime {
            case nil: true
            case .expiry(let before, _): before == form
            case .keep, .policy: false
            }
        }
    }
}

/// How a number says when an entry expires.
struct ExpiryForm: Equatable {
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
