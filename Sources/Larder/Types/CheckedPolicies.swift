import LarderEngine

// Policies and tags in the engine's form, with errors that describe the allowed values.

extension EntryPolicy.Checked {
    /// Returns the rule of an entry that is stored at `now`.
    /// - Parameters:
    ///   - settings: the database's policy.
    ///   - ahead: how many milliseconds the larder's time is ahead of the system clock, to which absolute deadlines
    ///     refer.
    ///   - previous: the rule of the fresh entry that is replaced; nil if there is none.
    func rule(_ settings: DatabasePolicy, now: Int64, ahead: Int64, previous: DeadlineRule?) -> DeadlineRule {
        switch lifetime {
        case .governed: jitter == nil ? .governed : settings.rule(nil, jitter: jitter, now: now)
        case .keep: previous ?? .governed
        case .policy(let policy): settings.rule(policy, jitter: jitter ?? 0, now: now)
        case .until(let instant):
            .own(now + DatabasePolicy.shortened(instant + ahead - now, by: jitter ?? 0))
        }
    }

    /// Returns the grace of an entry that is stored, in milliseconds; nil for that of the database.
    func grace(previous: RecordHeader?) -> Int64? {
        if let grace { return grace }
        return lifetime == .keep ? previous?.grace : nil
    }
}

/// A validated change of a database's policy.
struct PolicyChange: Sendable {
    let policy: UpdatePolicy
    /// In milliseconds; nil keeps the current grace.
    let grace: Int64?
    /// In percent; nil keeps the current jitter.
    let jitter: Int?

    init(
        _ policy: UpdatePolicy, _ grace: Duration?, _ jitter: Int?, _ operation: String, _ database: String
    ) throws(LarderError) {
        self.policy = policy
        do throws(EntryPolicy.Impossible) {
            self.grace = try grace.map { (grace) throws(EntryPolicy.Impossible) in
                try EntryPolicy.checked(grace: grace)
            }
            self.jitter = try jitter.map { (jitter) throws(EntryPolicy.Impossible) in
                try EntryPolicy.checked(jitter: jitter)
            }
        } catch {
            throw LarderError(.invalidArgument, error.message, operation: operation, database: database)
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

extension Tags {
    /// Returns the validated tags; nil if there are none.
    static func checked(_ tags: [String], _ database: String?, _ key: Key, _ operation: String = "set")
        throws(LarderError) -> Tags?
    {
        if tags.isEmpty { return nil }
        do throws(TagRules.Impossible) {
            return try Tags(checking: tags.map { Array($0.utf8) })
        } catch {
            throw LarderError(
                .invalidArgument, error.message, operation: operation, database: database, key: key.description)
        }
    }
}
