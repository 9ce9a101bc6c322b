// Scripts that the daemon runs.

extension BlockingLarderClient {
    /// Runs a script in the selected database, and returns its reply unchanged; see
    /// ``LarderClient/LarderClient/script(_:keys:arguments:readOnly:returning:)``.
    @discardableResult
    public func script(
        _ script: Script, keys: [any CacheKey] = [], arguments: [any ScriptArgument] = [], readOnly: Bool = false
    ) throws(LarderClientError) -> RESPValue {
        let call = try ScriptCall(script, keys: keys, arguments: arguments, readOnly: readOnly)
        let known = call.digest
        let digest = if let known { known } else { try perform(call.load) }
        do throws(LarderClientError) {
            return try perform(call.run(digest))
        } catch {
            guard ScriptCall.isUnknown(error) else { throw error }
            return try perform(call.runText)
        }
    }

    /// Runs a script in the selected database, as
    /// ``LarderClient/LarderClient/script(_:keys:arguments:readOnly:returning:)``, and blocks until it has ended.
    public func script<Result: ScriptResult>(
        _ script: Script, keys: [any CacheKey] = [], arguments: [any ScriptArgument] = [], readOnly: Bool = false,
        returning type: Result.Type = Result.self
    ) throws(LarderClientError) -> Result {
        do throws(LarderClientError) {
            return try ScriptCall.result(
                try self.script(script, keys: keys, arguments: arguments, readOnly: readOnly) as RESPValue)
        } catch {
            throw error.about(name)
        }
    }
}
