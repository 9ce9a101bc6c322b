import LarderRESP

// Scripts in one database.

extension DatabaseStore {
    /// Runs a script: by its digest, for which a server is asked once, and if this one does not know it, by its text.
    /// However it ends, the near cache forgets the keys.
    /// - Parameter isOrdered: whether it goes out behind all earlier requests that are.
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
