import LarderCommandCatalog
import LarderEngine
import LarderRESP

/// Variants of SET and GET with an implied option: for example SETNX (a condition), SETEX (a lifetime), and GETSET (the
/// previous value as the reply).
extension CommandTable {
    static let storingPlanners: Planners = [
        .setnx: StoringCommands.setnx,
        .setex: { words throws(CommandError) in try StoringCommands.set(words, .seconds) },
        .psetex: { words throws(CommandError) in try StoringCommands.set(words, .milliseconds) },
        .getset: StoringCommands.getset,
        .getex: StoringCommands.getex,
        .msetnx: StoringCommands.msetnx,
    ]
}

enum StoringCommands {
    @Sendable static func setnx(_ words: CallWords) throws(CommandError) -> EntryPlan {
        .store([try words.key(1)], [words.bytes(2)], SetOptions(if: .absent), words) { .flag($1) }
    }

    static func set(_ words: CallWords, _ form: ExpiryForm) throws(CommandError) -> EntryPlan {
        let deadline = try form.deadline(try words.integer(2), words, positive: true)
        let options = SetOptions(lifetime: .until(deadline))
        return .store([try words.key(1)], [words.bytes(3)], options, words) { _, _ in .ok }
    }

    @Sendable static func getset(_ words: CallWords) throws(CommandError) -> EntryPlan {
        let options = SetOptions(returnsPrevious: true)
        return .store([try words.key(1)], [words.bytes(2)], options, words) { previous, _ in
            .record(previous)
        }
    }

    @Sendable static func msetnx(_ words: CallWords) throws(CommandError) -> EntryPlan {
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

    @Sendable static func getex(_ words: CallWords) throws(CommandError) -> EntryPlan {
        let lifetime = try newLifetime(words)
        if case .unchanged = lifetime { return .value(1) }
        // As in Redis, parse the number only if there is an entry. Without an entry, a wrong number is no error.
        let rule = Result { () throws(CommandError) -> DeadlineRule in
            guard case .expiry(let form, let index) = lifetime else { return .ownNever }
            let value = try words.integer(index)
            return .own(try form.deadline(value, words, positive: true))
        }
        return try .change(words) { (update, _) throws(CommandError) in
            guard let record = update.readRecord(0) else { return .null }
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
}
