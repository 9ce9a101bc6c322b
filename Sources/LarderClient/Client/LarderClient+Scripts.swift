// Scripts, which the daemon runs.

extension LarderClient {
    /// Runs a script in the client's own database, and returns its reply unchanged; see
    /// ``script(_:keys:arguments:readOnly:returning:)``.
    @discardableResult
    public func script(
        _ script: Script, keys: [any CacheKey] = [], arguments: [any ScriptArgument] = [], readOnly: Bool = false
    ) async throws(LarderClientError) -> RESPValue {
        try await core.own.run(try ScriptCall(script, keys: keys, arguments: arguments, readOnly: readOnly))
    }

    /// Runs a script in the client's own database.
    ///
    /// ```swift
    /// let count: Int = try await client.script(countUp, keys: ["visits"], arguments: [60])
    /// ```
    /// It is one step for everybody else, and one commit unit: after a crash all or nothing of it is there. But what it
    /// has done before it fails stays. Costs one round trip, because only the SHA-1 of its text is sent (EVALSHA). The
    /// first call of the process brings the text, and asks for its SHA-1 (SCRIPT LOAD); so does another one if the server
    /// does not know the script any more (EVAL): a second round trip each. A reply
    /// that is lost with the connection throws `closed`, and nobody knows whether the script has run; with `readOnly` it
    /// is sent again.
    /// - Parameters:
    ///   - script: see ``Script``.
    ///   - keys: the keys that it reads and writes, `KEYS` in Lua. The near cache forgets them.
    ///   - arguments: `ARGV` in Lua.
    ///   - readOnly: whether the server refuses what would change an entry. The default is false.
    ///   - type: what the script returns: see ``ScriptResult``.
    /// - Throws: `server` with the error of the script, or of its text, ``LarderClientError/serverText``; `decode` when
    ///   it returned something else, which the message names: it has run nevertheless; `encode` for an argument that
    ///   cannot be encoded; `timeout` when it took longer than ``ClientOptions/timeoutMilliseconds``.
    public func script<Result: ScriptResult>(
        _ script: Script, keys: [any CacheKey] = [], arguments: [any ScriptArgument] = [], readOnly: Bool = false,
        returning type: Result.Type = Result.self
    ) async throws(LarderClientError) -> Result {
        try ScriptCall.result(
            try await self.script(script, keys: keys, arguments: arguments, readOnly: readOnly) as RESPValue)
    }
}
