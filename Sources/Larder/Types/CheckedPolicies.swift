import LarderEngine

// Policies in the engine's form, with errors that say what is allowed.

extension EntryPolicy.Checked {
    /// The rule of an entry that is stored at `now`.
    /// - Parameters:
    ///   - ahead: how far the larder's time is ahead of the clock, by which instants are given.
    ///   - former: the rule of the fresh entry that is replaced; nil if there is none.
    func rule(now: Int64, ahead: Int64, former: DeadlineRule?) -> DeadlineRule {
        switch self {
        case .governed: .governed
        case .keep: former ?? .governed
        case .policy(let policy): .policy(policy, now: now)
        case .until(let instant): .own(instant + ahead)
        }
    }
}

extension EntryPolicy {
    func checked(_ database: String?, _ key: Key, _ operation: String = "set") throws(LarderError) -> Checked {
        do throws(Impossible) {
            return try checked()
        } catch {
            throw LarderError(
                .invalidArgument, error.message, operation: operation, database: database, key: key.description)
        }
    }
}

extension UpdatePolicy {
    static func checked(_ seconds: Double, _ operation: String, _ database: String?) throws(LarderError)
        -> UpdatePolicy
    {
        do throws(EntryPolicy.Impossible) {
            return try checked(seconds)
        } catch {
            throw LarderError(.invalidArgument, error.message, operation: operation, database: database)
        }
    }
}
