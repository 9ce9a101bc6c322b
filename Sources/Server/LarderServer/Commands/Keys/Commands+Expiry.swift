import LarderCommandCatalog
import LarderEngine
import LarderRESP

extension CommandTable {
    static let expiryPlanners: Planners = [
        .expire: { words throws(CommandError) in try .change(words, try .expire(words, .seconds)) },
        .pexpire: { words throws(CommandError) in try .change(words, try .expire(words, .milliseconds)) },
        .expireat: { words throws(CommandError) in try .change(words, try .expire(words, .unixSeconds)) },
        .pexpireat: { words throws(CommandError) in try .change(words, try .expire(words, .unixMilliseconds)) },
        .ttl: { words in ExpiryCommands.remaining(words, inSeconds: true) },
        .pttl: { words in ExpiryCommands.remaining(words, inSeconds: false) },
        .expiretime: { words in ExpiryCommands.instant(words, inSeconds: true) },
        .pexpiretime: { words in ExpiryCommands.instant(words, inSeconds: false) },
        .persist: { words throws(CommandError) in try .change(words) { update, _ in .flag(update.persist(0)) } },
    ]
}

enum ExpiryCommands {
    /// Replies with the remaining lifetime of an entry, in seconds or milliseconds.
    static func remaining(_ words: CallWords, inSeconds: Bool) -> EntryPlan {
        deadline { EntryOperation.remaining($0, now: words.now, inSeconds: inSeconds) }
    }

    /// Replies with the time at which an entry expires, as seconds or milliseconds since 1970 by the wall clock.
    static func instant(_ words: CallWords, inSeconds: Bool) -> EntryPlan {
        let ahead = words.timeAhead
        return deadline { deadline in
            guard let deadline else { return EntryOperation.noDeadline }
            let instant = max(0, max(deadline, words.now) - ahead)
            // Round to the nearest second. Adding 500 ms first could overflow.
            return inSeconds ? instant / 1000 + (instant % 1000 >= 500 ? 1 : 0) : instant
        }
    }

    private static func deadline(_ answer: @escaping (Int64?) -> Int64) -> EntryPlan {
        .facts(1, .counted) { facts, rules, replies in
            replies.integer(facts.map { answer(rules.deadline($0.header)) } ?? EntryOperation.noEntry)
        }
    }
}
