import LarderCommandCatalog
import LarderEngine
import LarderRESP

/// FETCH and RELEASE. If a value is missing or due for a refresh, one client gets a lease, which is the right to
/// compute the value. Other clients get the old value, or wait.
extension CommandTable {
    static let fetchingPlanners: Planners = [
        .fetch: { words throws(CommandError) in .fetch(try FetchWords(words)) },
        .release: FetchingCommands.release,
    ]
}

enum FetchingCommands {
    /// Releases a lease, because the client will not store a value.
    @Sendable static func release(_ words: CallWords) throws(CommandError) -> EntryPlan {
        _ = try words.key(1)
        let token = try words.token(2)
        if words.count == 3 {
            return try .change(words, .none) { update, _ in update.release(0, token, .open) ? .ok : .null }
        }
        if words.count == 4, words.isWord(3, "UNCHANGED") {
            return try .change(words) { (update, _) throws(CommandError) in
                switch update.releaseUnchanged(0, token) {
                case .done: return .ok
                case .lost: return .null
                case .nothingStored:
                    throw CommandError("ERR UNCHANGED needs a stored value, and there is none; the lease was released")
                }
            }
        }
        guard words.count == 5 else { throw .syntax }
        if words.isWord(3, "ABSENT") {
            let rest = try FetchWords.milliseconds(words.bytes(4), "ABSENT", from: 1)
            return try .change(words, .headers) { update, _ in
                update.releaseAbsent(0, token, milliseconds: rest) ? .ok : .null
            }
        }
        guard words.isWord(3, "FAILED") else { throw .syntax }
        let rest = try FetchWords.milliseconds(words.bytes(4), "FAILED", from: 1)
        return try .change(words, .none) { update, _ in
            update.release(0, token, .failed(milliseconds: rest)) ? .ok : .null
        }
    }
}
