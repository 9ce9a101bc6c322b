import LarderRESP

// Scripts in one database.

extension DatabaseStore {
    /// Runs a script by its digest, which the first call of the process requests from the server. If the server does
    /// not have the script, runs it by its text. Whether the call succeeds or fails, the near cache then drops the
    /// script's keys.
    /// - Parameter isOrdered: whether the script is sent after all earlier ordered requests.
    /// - Throws: `server` with the script's error, and errors of the connection.
    func run(_ call: ScriptCall, isOrdered: Bool = false) async throws(LarderClientError) -> RESPValue {
        defer { if let near { for key in call.keys { near.drop(key) } } }
        let link = isOrdered ? links[0] : nil
        let known = call.digest
        let digest = if let known { known } else { try await perform(call.load, link) }
        do throws(LarderClientError) {
            return try await perform(call.run(digest), link)
        } catch {
            guard ScriptCall.isUnknown(error) else { throw error }
            return try await perform(call.runText, link)
        }
    }
}
