// Databases: which one this client uses, their policies, emptying them; and what the daemon says of itself.

import RESP

extension LarderClient {
    /// Uses the database `name` from now on, after a new connection too. It comes into being with its first entry.
    public func select(_ database: String) throws(LarderClientError) {
        try session.select(database)
    }

    /// The databases of the larder, by name.
    public func databases() throws(LarderClientError) -> [DatabaseInfo] {
        guard let elements = try answer(["DATABASES"]).elements else {
            throw LarderClientError.unexpectedReply(to: "DATABASES", "an array")
        }
        var databases: [DatabaseInfo] = []
        for element in elements { databases.append(try DatabaseInfo(reply: element)) }
        return databases
    }

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
        guard try answer(["POLICY", policy.description]) == .simpleString("OK") else {
            throw LarderClientError.unexpectedReply(to: "POLICY", "OK")
        }
    }

    /// Empties this client's database.
    @discardableResult
    public func purge() throws(LarderClientError) -> PurgeResult {
        try PurgeResult(reply: try answer(["PURGE"]))
    }

    /// Removes what has expired in this client's database and still takes space.
    @discardableResult
    public func purgeExpired() throws(LarderClientError) -> PurgeResult {
        try PurgeResult(reply: try answer(["PURGE", "EXPIRED"]))
    }

    /// Removes the entries of this client's database whose keys begin with `prefix`.
    @discardableResult
    public func purge(prefix: String) throws(LarderClientError) -> PurgeResult {
        try purge(prefix: Array(prefix.utf8))
    }

    /// What the daemon says of itself: lines of `name:value` under headings, as `INFO` gives them.
    /// - Parameter section: one section of it only, such as `memory`; nil for the usual ones.
    public func serverInfo(section: String? = nil) throws(LarderClientError) -> String {
        guard let bytes = try answer(["INFO"] + (section.map { [$0] } ?? [])).bytes else {
            throw LarderClientError.unexpectedReply(to: "INFO", "text")
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    package func policyInfo() throws(LarderClientError) -> PolicyInfo {
        try PolicyInfo(reply: try answer(["POLICY"]))
    }

    package func purge(prefix: [UInt8]) throws(LarderClientError) -> PurgeResult {
        try PurgeResult(reply: try answer([Array("PURGE".utf8), Array("PREFIX".utf8), prefix]))
    }
}
