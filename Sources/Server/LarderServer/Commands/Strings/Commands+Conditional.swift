import LarderCommandCatalog
import LarderEngine
import LarderRESP

/// Commands that Redis has added after version 7: changes that depend on the current value (DELEX), its digest
/// (DIGEST), and storing many values with one lifetime (MSETEX).
extension CommandTable {
    static let conditionalCommands: Handlers = [
        .digest: ConditionalCommands.digest,
        .delex: ConditionalCommands.delex,
        .msetex: ConditionalCommands.msetex,
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
            guard update.isFresh(0), condition?.holds(update.payload(0)) ?? true else {
                if condition == nil { update.removeStored(0) }
                return false
            }
            update.remove(0)
            return true
        }
        return call.reply(isRemoved ? 1 : 0)
    }

    @Sendable static func msetex(_ call: inout Call) throws(CommandError) -> Outcome {
        guard let number = parseInteger(call.bytes(1)), number > 0 else {
            throw CommandError("ERR invalid numkeys value")
        }
        guard number <= (call.count - 2) / 2 else { throw CommandError("ERR wrong number of key-value pairs") }
        let end = 2 + 2 * Int(number)
        let options = try SetOptions(call, from: end, isForMany: true, keyCount: Int(number))
        var keys: [Key] = []
        var values: [UnsafeRawBufferPointer] = []
        for index in stride(from: 2, to: end, by: 2) {
            keys.append(try call.key(index))
            values.append(call.bytes(index + 1))
        }
        let isStored = try StringCommands.store(&call, keys, values, options).isStored
        return call.reply(isStored ? 1 : 0)
    }
}
