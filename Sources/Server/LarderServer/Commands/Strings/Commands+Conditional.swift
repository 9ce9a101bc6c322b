import LarderCommandCatalog
import LarderEngine
import LarderRESP

/// Commands that Redis has added after version 7: DELEX removes an entry if its value meets a condition. DIGEST returns
/// the digest of a value. MSETEX stores several values with one lifetime.
extension CommandTable {
    static let conditionalPlanners: Planners = [
        .digest: ConditionalCommands.digest,
        .delex: ConditionalCommands.delex,
        .msetex: ConditionalCommands.msetex,
    ]
}

enum ConditionalCommands {
    @Sendable static func digest(_ words: CallWords) throws(CommandError) -> EntryPlan {
        .read(1) { payload, replies in
            if let payload { replies.bulk(Digest.text(payload)) } else { replies.null() }
        }
    }

    @Sendable static func delex(_ words: CallWords) throws(CommandError) -> EntryPlan {
        guard words.count == 2 || words.count == 4 else { throw .arity("delex") }
        var condition: ValueCondition?
        if words.count == 4 {
            guard ValueCondition.isOne(words, 2) else { throw .syntax }
            condition = try ValueCondition(words, 2)
        }
        return try .change(words) { [condition] update, _ in
            guard update.isFresh(0), condition?.holds(update.payload(0)) ?? true else {
                if condition == nil { update.removeStored(0) }
                return .integer(0)
            }
            update.remove(0)
            return .integer(1)
        }
    }

    @Sendable static func msetex(_ words: CallWords) throws(CommandError) -> EntryPlan {
        guard let number = parseInteger(words.bytes(1)), number > 0 else {
            throw CommandError("ERR invalid numkeys value")
        }
        guard number <= (words.count - 2) / 2 else { throw CommandError("ERR wrong number of key-value pairs") }
        let end = 2 + 2 * Int(number)
        let options = try SetOptions(words, from: end, isForMany: true, keyCount: Int(number))
        var keys: [Key] = []
        var values: [UnsafeRawBufferPointer] = []
        for index in stride(from: 2, to: end, by: 2) {
            keys.append(try words.key(index))
            values.append(words.bytes(index + 1))
        }
        return .store(keys, values, options, words) { .flag($1) }
    }
}
