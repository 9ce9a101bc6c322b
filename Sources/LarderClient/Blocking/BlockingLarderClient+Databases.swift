// Databases: selecting and emptying them, their policies, and information about the daemon.

extension BlockingLarderClient {
    /// Selects a database, now and after each reconnect. The daemon creates it when it stores the first entry.
    public func select(_ database: String) throws(LarderClientError) {
        try session.select(database)
    }

    /// Returns the databases of the larder, ordered by name.
    public func databases() throws(LarderClientError) -> [DatabaseInfo] { try perform(.databases) }

    /// Returns the policy of this client's database.
    public func policy() throws(LarderClientError) -> UpdatePolicy {
        let info = try policyInfo()
        guard let policy = UpdatePolicy(serverInterval: info.intervalMilliseconds ?? -1) else {
            throw LarderClientError.unexpectedReply(to: "POLICY", "a policy")
        }
        return policy
    }

    /// Changes the policy of this client's database: see ``RemoteCache/setPolicy(_:grace:jitter:)``.
    /// - Throws: `invalidArgument` for an invalid grace or jitter.
    public func setPolicy(_ policy: UpdatePolicy, grace: Duration? = nil, jitter percent: Int? = nil)
        throws(LarderClientError)
    {
        try perform(.setPolicy(policy, grace: grace, jitter: percent, name))
    }

    /// Empties this client's database, at a cost that does not depend on its size. The policy stays.
    @discardableResult
    public func removeAll() throws(LarderClientError) -> PurgeReport { try perform(.purge()) }

    /// Removes all entries with a tag, durably, at a cost that does not depend on their number. With `soft`, makes
    /// them stale instead: see `RemoteCache.removeAll(tagged:soft:)`. Needs larderd.
    /// - Throws: `invalidArgument` for an invalid tag, or more than 1024 tags; nothing is sent in that case.
    public func removeAll(tagged tag: String, soft: Bool = false) throws(LarderClientError) {
        try removeAll(tagged: [tag], soft: soft)
    }

    /// Like the call above, for all entries with at least one of several tags, in one step. Without tags, nothing is
    /// sent.
    public func removeAll(tagged tags: some Sequence<String>, soft: Bool = false) throws(LarderClientError) {
        try removeAll(taggedBytes: tags.map { Array($0.utf8) }, soft: soft)
    }

    /// Like ``removeAll(tagged:soft:)``, for tags that need not be UTF-8.
    package func removeAll(taggedBytes tags: [[UInt8]], soft: Bool) throws(LarderClientError) {
        let words = try CheckedTags.purged(tags, soft: soft, name)
        guard !words.isEmpty else { return try session.nothing("PURGE", ()) }
        try perform(.purge(tags: words))
    }

    /// Removes expired entries of this client's database that the daemon has not removed yet.
    @discardableResult
    public func removeExpired() throws(LarderClientError) -> PurgeReport {
        try perform(.purge(wordList("EXPIRED")))
    }

    /// Removes the entries of this client's database whose keys begin with `prefix`.
    @discardableResult
    public func remove(prefix: some CacheKey) throws(LarderClientError) -> PurgeReport {
        try perform(.purge(wordList("PREFIX") + [prefix.keyBytes]))
    }

    /// Returns the daemon's `INFO`: lines of `name:value` under headings.
    /// - Parameter section: a single section, such as `memory`; nil for the default ones.
    public func serverInfo(section: String? = nil) throws(LarderClientError) -> String {
        try perform(.serverInfo(section))
    }

    /// Returns the disk limit of this client's database.
    package func limitInfo() throws(LarderClientError) -> LimitInfo { try perform(.limit) }

    /// Sets the disk limit of this client's database.
    /// - Parameter limit: in the daemon's syntax: a number of bytes, such as `64M`, or `none`.
    package func setLimit(_ limit: String) throws(LarderClientError) { try perform(.setLimit(limit)) }

    /// Returns the fields of the origin of this client's database, as names and values. The first field is its URL,
    /// which is empty if there is no origin.
    package func originInfo() throws(LarderClientError) -> [(String, String)] { try perform(.origin) }

    /// Sets the origin of this client's database.
    /// - Parameter words: in the daemon's syntax: a URL followed by options, or `none`.
    package func setOrigin(_ words: [[UInt8]]) throws(LarderClientError) { try perform(.setOrigin(words)) }

    package func policyInfo() throws(LarderClientError) -> PolicyInfo { try perform(.policy) }
}
