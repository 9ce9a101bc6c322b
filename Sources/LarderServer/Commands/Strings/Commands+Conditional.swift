import LarderEngine
import RESP

/// What versions of Redis later than 7 brought for caches: changes that depend on the value, and many values with one
/// lifetime.
extension CommandTable {
    static let conditionalCommands: [CommandSpec] = [
        CommandSpec(
            "digest", arity: 2, [.readonly, .fast], keys: .one, group: "string", since: "8.4.0",
            complexity: "O(N) with N the value's length", syntax: "key",
            summary: "Returns the XXH3 hash of a value, to compare it without sending it.",
            reply: "bulk of 16 hexadecimal digits; null when there is no fresh entry", run: ConditionalCommands.digest),
        CommandSpec(
            "delex", arity: -2, [.write, .fast], keys: .one, group: "string", since: "8.4.0",
            complexity: "O(N) with N the value's length",
            syntax: "key [IFEQ value | IFNE value | IFDEQ digest | IFDNE digest]",
            summary: "Removes a key if its value, or the digest of its value, is equal to another, or is not.",
            reply: "1; 0 when there is no fresh entry or the condition forbade it", run: ConditionalCommands.delex),
        CommandSpec(
            "msetex", arity: -4, [.write, .creates], keys: .countedPairs, group: "string", since: "8.4.0",
            complexity: "O(N)",
            syntax: "numkeys key value [key value ...] [NX | XX] [EX seconds | PX milliseconds "
                + "| EXAT unix-time-seconds | PXAT unix-time-milliseconds | KEEPTTL | POLICY name|seconds] "
                + "[CODEC raw|json|plist|custom]",
            summary: "Stores several values, all or none, with one lifetime; NX asks that none of the keys has a fresh "
                + "entry, XX that all have one.",
            reply: "1; 0 when the condition forbade it", run: ConditionalCommands.msetex),
    ]
}

enum ConditionalCommands {
    @Sendable static func digest(_ call: inout Call) throws(CommandError) -> Outcome {
        var digest: String?
        try call.read(1) { _, payload in digest = Digest.text(payload) }
        if let digest { call.session.replies.bulk(digest) } else { call.session.replies.null() }
        return .done
    }

    @Sendable static func delex(_ call: inout Call) throws(CommandError) -> Outcome {
        guard call.count == 2 || call.count == 4 else { throw .arity("delex") }
        var condition: ValueCondition?
        if call.count == 4 {
            guard ValueCondition.isOne(call, 2) else { throw .syntax }
            condition = try ValueCondition(call, 2)
        }
        let isRemoved = try call.update([try call.key(1)], loading: true) { [condition] update -> Bool in
            guard let record = update.current(0), condition?.holds(record) ?? true else { return false }
            update.remove(0)
            return true
        }
        call.session.replies.integer(isRemoved ? 1 : 0)
        return .done
    }

    @Sendable static func msetex(_ call: inout Call) throws(CommandError) -> Outcome {
        guard let number = parseInteger(call.bytes(1)), number > 0 else {
            throw CommandError("ERR invalid numkeys value")
        }
        guard number <= (call.count - 2) / 2 else { throw CommandError("ERR wrong number of key-value pairs") }
        let end = 2 + 2 * Int(number)
        let options = try SetOptions(call, from: end, command: "msetex", isForMany: true)
        var keys: [Key] = []
        var values: [UnsafeRawBufferPointer] = []
        for index in stride(from: 2, to: end, by: 2) {
            keys.append(try call.key(index))
            values.append(call.bytes(index + 1))
        }
        let isLoading = options.needsCurrent
        let isStored = try call.update(keys, loading: isLoading, headersOnly: true) { [keys, values] update -> Bool in
            // As they were before any of them is stored: a key may be named twice.
            let former = keys.indices.map { isLoading ? update.current($0) : nil }
            for record in former where !options.condition.allows(record) { return false }
            if options.keepsDeadline { update.origin.tag = WriteTag.setKeeping.rawValue }
            for (index, value) in values.enumerated() {
                if let rule = options.rule(former[index], now: update.now) {
                    update.put(index, payload: value, rule: rule, codec: options.codec)
                } else {
                    update.remove(index)
                }
            }
            return true
        }
        call.session.replies.integer(isStored ? 1 : 0)
        return .done
    }
}
