import LarderCommandCatalog
import LarderEngine
import LarderRESP

/// Commands that read or store whole values: SET, GET, and variants with an implied option, for example SETNX (a
/// condition), SETEX (a lifetime), and GETSET (the previous value as the reply). Redis has added three of them after
/// version 7: DELEX removes an entry if its value meets a condition, DIGEST returns the digest of a value, and MSETEX
/// stores several values with one lifetime.
extension CommandTable {
    static let stringPlanners: Planners = [
        .get: { _ in .value(1) },
        .set: { words throws(CommandError) in .store(try SetOptions(words)) },
        .getdel: getdel,
        .mget: { _ in .values },
        .mset: mset,
        .strlen: { _ in .facts(1, .counted) { facts, _, replies in replies.integer(facts?.payloadCount ?? 0) } },
        .setnx: setnx,
        .setex: { words throws(CommandError) in try set(words, .seconds) },
        .psetex: { words throws(CommandError) in try set(words, .milliseconds) },
        .getset: getset,
        .getex: getex,
        .msetnx: msetnx,
        .digest: { _ in
            .read(1) { payload, replies in
                if let payload { replies.bulk(Digest.text(payload)) } else { replies.null() }
            }
        },
        .delex: delex,
        .msetex: msetex,
    ]

    @Sendable private static func getdel(_ words: CallWords) throws(CommandError) -> EntryPlan {
        try .change(words) { update, _ in
            let record = update.readRecord(0)
            update.removeStored(0)
            return .record(record)
        }
    }

    @Sendable private static func mset(_ words: CallWords) throws(CommandError) -> EntryPlan {
        guard words.count % 2 == 1 else { throw .arity("mset") }
        let keys = try words.keys(from: 1, step: 2)
        return .change(
            ChangePlan(keys: keys, loading: .none) { update, _ in
                for index in keys.indices { update.put(index, payload: words.bytes(2 * index + 2)) }
                return .ok
            })
    }

    // MARK: Variants of SET

    @Sendable private static func setnx(_ words: CallWords) throws(CommandError) -> EntryPlan {
        .store([try words.key(1)], [words.bytes(2)], SetOptions(if: .absent), words) { .flag($1) }
    }

    private static func set(_ words: CallWords, _ form: ExpiryForm) throws(CommandError) -> EntryPlan {
        let deadline = try form.deadline(try words.integer(2), words, positive: true)
        let options = SetOptions(lifetime: .until(deadline))
        return .store([try words.key(1)], [words.bytes(3)], options, words) { _, _ in .ok }
    }

    @Sendable private static func getset(_ words: CallWords) throws(CommandError) -> EntryPlan {
        let options = SetOptions(returnsPrevious: true)
        return .store([try words.key(1)], [words.bytes(2)], options, words) { previous, _ in
            .record(previous)
        }
    }

    @Sendable private static func msetnx(_ words: CallWords) throws(CommandError) -> EntryPlan {
        guard words.count % 2 == 1 else { throw .arity("msetnx") }
        let keys = try words.keys(from: 1, step: 2)
        let values = keys.indices.map { words.bytes(2 * $0 + 2) }
        return .store(keys, values, SetOptions(if: .absent), words) { .flag($1) }
    }

    // MARK: GETEX

    private enum NewLifetime {
        case unchanged
        case never
        case expiry(ExpiryForm, Int)
    }

    @Sendable private static func getex(_ words: CallWords) throws(CommandError) -> EntryPlan {
        let lifetime = try newLifetime(words)
        if case .unchanged = lifetime { return .value(1) }
        // As in Redis, parse the number only if there is an entry. Without an entry, a wrong number is no error.
        let rule = Result { () throws(CommandError) -> DeadlineRule in
            guard case .expiry(let form, let index) = lifetime else { return .ownNever }
            let value = try words.integer(index)
            return .own(try form.deadline(value, words, positive: true))
        }
        return try .change(words) { (update, _) throws(CommandError) in
            guard let record = update.readRecord(0) else {
                if case .success(.own(let deadline)) = rule, deadline <= update.now { update.removeEvicted(0) }
                return .null
            }
            switch try rule.get() {
            case .own(let deadline) where deadline <= update.now: update.remove(0)
            case .ownNever: _ = update.persist(0)
            case let rule: update.set(0, rule)
            }
            return .record(record)
        }
    }

    private static func newLifetime(_ words: CallWords) throws(CommandError) -> NewLifetime {
        var lifetime = NewLifetime.unchanged
        var index = 2
        while index < words.count {
            if words.isWord(index, "PERSIST") {
                if case .expiry = lifetime { throw .syntax }
                lifetime = .never
                index += 1
                continue
            }
            guard let form = ExpiryForm(ShortWord(words.bytes(index))), index + 1 < words.count else { throw .syntax }
            switch lifetime {
            case .unchanged: break
            // As in Redis, an option such as EX may be given several times. The last one applies.
            case .expiry(let before, _): guard before == form else { throw .syntax }
            case .never: throw .syntax
            }
            lifetime = .expiry(form, index + 1)
            index += 2
        }
        return lifetime
    }

    // MARK: Conditions

    @Sendable private static func delex(_ words: CallWords) throws(CommandError) -> EntryPlan {
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

    @Sendable private static func msetex(_ words: CallWords) throws(CommandError) -> EntryPlan {
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
