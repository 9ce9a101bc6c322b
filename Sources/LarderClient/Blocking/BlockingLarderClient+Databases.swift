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

    /// Removes all entries with a tag at once, however many they are. The removal is durable when the call returns, and
    /// from then on no read returns such an entry; their space is reclaimed in the background. What is being fetched for a
    /// key with the tag is too old then, and is not stored. Needs larderd.
    /// - Parameters:
    ///   - tag: as for ``set(_:forKey:policy:tags:)``. A removal is also remembered for a tag that no entry has.
    ///   - soft: whether the entries are stale instead of gone: calls that fetch may still return them for the rest of
    ///     their grace, while somebody fetches the new value. Entries without a grace are gone.
    /// - Throws: `invalidArgument` for an impossible tag, or more than 1024 of them; nothing is sent then.
    public func removeAll(tagged tag: String, soft: Bool = false) throws(LarderClientError) {
        try removeAll(tagged: [tag], soft: soft)
    }

    /// Like the call above, for all entries with one or more of several tags, in one step. Without tags, nothing is sent.
    public func removeAll(tagged tags: some Sequence<String>, soft: Bool = false) throws(LarderClientError) {
        try removeAll(taggedBytes: tags.map { Array($0.utf8) }, soft: soft)
    }

    /// Like ``removeAll(tagged:soft:)``, for tags that need not be UTF-8.
    package func removeAll(taggedBytes tags: [[UInt8]], soft: Bool) throws(LarderClientError) {
        let words = try CheckedTags.purged(tags, soft: soft, name)
        guard !words.isEmpty else {
            _ = try session.perform([], operation: "PURGE")
            return
        }
        try perform(.purge(tags: words))
    }

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

    /// The limit of this client's database on the disk.
    package func limitInfo() throws(LarderClientError) -> LimitInfo { try perform(.limit) }

    /// Changes it.
    /// - Parameter limit: as the daemon parses it: a number of bytes, such as `64M`, or `none`.
    package func setLimit(_ limit: String) throws(LarderClientError) { try perform(.setLimit(limit)) }

    /// The server behind this client's database: names and values; the first is its URL, empty for none.
    package func originInfo() throws(LarderClientError) -> [(String, String)] { try perform(.origin) }

    /// Changes it.
    /// - Parameter words: as the daemon parses them: a URL and what is behind it, or `none`.
    package func setOrigin(_ words: [[UInt8]]) throws(LarderClientError) { try perform(.setOrigin(words)) }

    package func policyInfo() throws(LarderClientError) -> PolicyInfo { try perform(.policy) }
}
