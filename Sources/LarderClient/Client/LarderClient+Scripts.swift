// Scripts that the daemon runs.

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
    /// No command of another client runs during the script. The changes of the script are committed together: after a
    /// crash either all of them are stored or none. If the script fails, the changes that it made before are kept.
    ///
    /// Costs one round trip, because only the SHA-1 of the text is sent (EVALSHA). There are two exceptions with one
    /// more round trip each. The first call of the process sends the text to obtain its SHA-1 (SCRIPT LOAD). If the
    /// server no longer has the script, the call sends the text again (EVAL). If the connection is lost before the
    /// reply, the call throws `closed`, and it is unknown whether the script has run. With `readOnly`, the client sends
    /// the script again instead.
    /// - Parameters:
    ///   - script: see ``Script``.
    ///   - keys: the keys that the script reads and writes, `KEYS` in Lua. The near cache drops them.
    ///   - arguments: `ARGV` in Lua.
    ///   - readOnly: whether the server refuses commands that would change an entry. The default is false.
    ///   - type: the type of the result: see ``ScriptResult``.
    /// - Throws: `server` if the script fails or its text is invalid (``LarderClientError/serverText`` has the reason);
    ///   `decode` if the script has run, but its result has another type, which the message names; `encode` for an
    ///   argument that cannot be encoded; `timeout` if the call took longer than ``ClientOptions/timeoutMilliseconds``.
    public func script<Result: ScriptResult>(
        _ script: Script, keys: [any CacheKey] = [], arguments: [any ScriptArgument] = [], readOnly: Bool = false,
        returning type: Result.Type = Result.self
    ) async throws(LarderClientError) -> Result {
        try ScriptCall.result(
            try await self.script(script, keys: keys, arguments: arguments, readOnly: readOnly) as RESPValue)
    }
}
