import LarderRESP

// Scripts in one database.

extension DatabaseStore {
    /// Runs a script by its digest, which is requested from a server once, or by its text if this server does not have
    /// it. Whether it succeeds or fails, the near cache drops the script's keys.
    /// - Parameter isOrdered: whether it is sent after all earlier ordered requests.
    /// - Throws: the script's error, `server`, among others.
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
