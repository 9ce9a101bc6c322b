// Databases: which one this client uses, their policies, emptying them; and what the daemon says of itself.

extension BlockingLarderClient {
    /// Uses the database `name` from now on, after a new connection too. It comes into being with its first entry.
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

    /// Changes the policy of this client's database, for the entries that are there too: those that the new policy
    /// lets expire earlier do so. What had expired stays so.
    public func setPolicy(_ policy: UpdatePolicy) throws(LarderClientError) {
        try perform(.setPolicy(policy))
    }

    /// Empties this client's database at once, whatever its size. The policy stays.
    @discardableResult
    public func removeAll() throws(LarderClientError) -> PurgeReport { try perform(.purge()) }

    /// Removes what has expired in this client's database and still takes space.
    @discardableResult
    public func removeExpired() throws(LarderClientError) -> PurgeReport {
        try perform(.purge(wordList("EXPIRED")))
    }

    /// Removes the entries of this client's database whose keys begin with `prefix`.
    @discardableResult
    public func remove(prefix: some CacheKey) throws(LarderClientError) -> PurgeReport {
        try perform(.purge(wordList("PREFIX") + [prefix.keyBytes]))
    }

    /// What the daemon says of itself: lines of `name:value` under headings, as `INFO` gives them.
    /// - Parameter section: one section of it only, such as `memory`; nil for the usual ones.
    public func serverInfo(section: String? = nil) throws(LarderClientError) -> String {
        try perform(.serverInfo(section))
    }

    package func policyInfo() throws(LarderClientError) -> PolicyInfo { try perform(.policy) }
}
