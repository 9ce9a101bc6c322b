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
    /// The script is isolated from other clients, and is one commit unit: after a crash it has been executed completely
    /// or not at all. Changes that it makes before it fails are kept.
    ///
    /// Costs one round trip, because only the SHA-1 of its text is sent (EVALSHA). The first call of the process sends
    /// the text to obtain its SHA-1 (SCRIPT LOAD), and a call to a server that no longer has the script sends it again
    /// (EVAL): one more round trip each. If the reply is lost with the connection, the call throws `closed`, and it is
    /// unknown whether the script has run; with `readOnly` it is sent again.
    /// - Parameters:
    ///   - script: see ``Script``.
    ///   - keys: the keys that it reads and writes, `KEYS` in Lua. The near cache drops them.
    ///   - arguments: `ARGV` in Lua.
    ///   - readOnly: whether the server refuses commands that would change an entry. The default is false.
    ///   - type: the type of the result: see ``ScriptResult``.
    /// - Throws: `server` with the error of the script or its text, ``LarderClientError/serverText``; `decode` if it
    ///   returned another type, which the message names, although it has run; `encode` for an argument that cannot be
    ///   encoded; `timeout` if it took longer than ``ClientOptions/timeoutMilliseconds``.
    public func script<Result: ScriptResult>(
        _ script: Script, keys: [any CacheKey] = [], arguments: [any ScriptArgument] = [], readOnly: Bool = false,
        returning type: Result.Type = Result.self
    ) async throws(LarderClientError) -> Result {
        try ScriptCall.result(
            try await self.script(script, keys: keys, arguments: arguments, readOnly: readOnly) as RESPValue)
    }
}
