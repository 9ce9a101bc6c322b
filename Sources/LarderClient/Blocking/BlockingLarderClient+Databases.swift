// Databases: selecting one, their policies, emptying them; and facts about the daemon.

extension BlockingLarderClient {
    /// Uses the database `name` from now on, on later connections too. The database is created by its first entry.
    public func select(_ database: String) throws(LarderClientError) {
        try session.select(database)
    }

    /// The databases of the larder, by name.
    public func databases() throws(LarderClientError) -> [DatabaseInfo] { try perform(.databases) }

    /// The policy of this client's database.
    public func policy() throws(LarderClientError) -> UpdatePolicy {
        let info = try policyInfo()
        guard let policy = UpdatePolicy(serverInterval: info.intervalMilliseconds ?? -1) else {
            throw LarderClientError.unexpectedReply(to: "POLICY", "a policy")
        }
        return policy
    }

    /// Changes the policy of this client's database. It also applies to existing entries, but does not revive expired
    /// ones.
    /// - Parameters:
    ///   - policy: how long entries stay fresh that have no policy of their own.
    ///   - grace: for how long entries are kept behind their deadline for calls that fetch, unless they have a grace of
    ///     their own; nil keeps the present one.
    ///   - percent: by how many percent the lives of entries that follow the policy are shortened at most when they are
    ///     stored, at random, 0 to 100; nil keeps the present one.
    /// - Throws: `invalidArgument` for an impossible grace or jitter.
    public func setPolicy(_ policy: UpdatePolicy, grace: Duration? = nil, jitter percent: Int? = nil)
        throws(LarderClientError)
    {
        try perform(.setPolicy(policy, grace: grace, jitter: percent, name))
    }

    /// Empties this client's database at once, whatever its size. The policy stays.
    @discardableResult
    public func removeAll() throws(LarderClientError) -> PurgeReport { try perform(.purge()) }

    /// Removes expired entries of this client's database that still take space.
    @discardableResult
    public func removeExpired() throws(LarderClientError) -> PurgeReport {
        try perform(.purge(wordList("EXPIRED")))
    }

    /// Removes the entries of this client's database whose keys begin with `prefix`.
    @discardableResult
    public func remove(prefix: some CacheKey) throws(LarderClientError) -> PurgeReport {
        try perform(.purge(wordList("PREFIX") + [prefix.keyBytes]))
    }

    /// The daemon's `INFO`: lines of `name:value` under headings.
    /// - Parameter section: a single section, such as `memory`; nil for the usual ones.
    public func serverInfo(section: String? = nil) throws(LarderClientError) -> String {
        try perform(.serverInfo(section))
    }

    package func policyInfo() throws(LarderClientError) -> PolicyInfo { try perform(.policy) }
}
