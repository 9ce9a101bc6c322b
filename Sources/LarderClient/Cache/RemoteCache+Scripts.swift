// Scripts that the daemon runs.

extension RemoteCache {
    /// Runs a script in this database, and returns its reply unchanged; see
    /// ``LarderClient/LarderClient/script(_:keys:arguments:readOnly:returning:)``.
    @discardableResult
    public func script(
        _ script: Script, keys: [any CacheKey] = [], arguments: [any ScriptArgument] = [], readOnly: Bool = false
    ) async throws(LarderClientError) -> RESPValue {
        try await store.run(try ScriptCall(script, keys: keys, arguments: arguments, readOnly: readOnly))
    }

    /// Runs a script in this database, as ``LarderClient/LarderClient/script(_:keys:arguments:readOnly:returning:)``
    /// does in the client's own database. Use ``ScriptModel`` for models of the cache.
    public func script<Result: ScriptResult>(
        _ script: Script, keys: [any CacheKey] = [], arguments: [any ScriptArgument] = [], readOnly: Bool = false,
        returning type: Result.Type = Result.self
    ) async throws(LarderClientError) -> Result {
        do throws(LarderClientError) {
            return try ScriptCall.result(
                try await self.script(script, keys: keys, arguments: arguments, readOnly: readOnly) as RESPValue)
        } catch {
            throw error.about(name)
        }
    }
}
