import LarderCommandCatalog
import LarderEngine
import LarderRESP

extension CommandTable {
    static let expiryPlanners: Planners = [
        .expire: { words throws(CommandError) in .apply(try .expire(words, .seconds)) },
        .pexpire: { words throws(CommandError) in .apply(try .expire(words, .milliseconds)) },
        .expireat: { words throws(CommandError) in .apply(try .expire(words, .unixSeconds)) },
        .pexpireat: { words throws(CommandError) in .apply(try .expire(words, .unixMilliseconds)) },
        .ttl: { _ in .apply(.remaining(inSeconds: true)) },
        .pttl: { _ in .apply(.remaining(inSeconds: false)) },
        .expiretime: { words in ExpiryCommands.instant(words, inSeconds: true) },
        .pexpiretime: { words in ExpiryCommands.instant(words, inSeconds: false) },
        .persist: { words throws(CommandError) in try .change(words) { update, _ in .flag(update.persist(0)) } },
    ]
}

enum ExpiryCommands {
    /// Replies with the time at which an entry expires, as seconds or milliseconds since 1970 by the wall clock.
    static func instant(_ words: CallWords, inSeconds: Bool) -> EntryPlan {
        let ahead = words.timeAhead
        return .facts(1, .counted) { facts, rules, replies in
            guard let facts else { return replies.integer(EntryOperation.noEntry) }
            guard let deadline = rules.deadline(facts.header) else {
                return replies.integer(EntryOperation.noDeadline)
            }
            let instant = max(0, max(deadline, words.now) - ahead)
            // Round to the nearest second. Adding 500 ms first could overflow.
            replies.integer(inSeconds ? instant / 1000 + (instant % 1000 >= 500 ? 1 : 0) : instant)
        }
    }
}
