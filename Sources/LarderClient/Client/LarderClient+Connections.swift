// Connections that one caller has for itself.

extension LarderClient {
    /// Runs `body` with a connection of its own to the client's database, which is closed afterwards.
    ///
    /// ```swift
    /// let both = try await client.withConnection { connection in
    ///     try await connection.command("SNAPSHOT", "OPEN")
    ///     return [try await connection.command("GET", "a"), try await connection.command("GET", "b")]
    /// }
    /// ```
    /// Waits while ``ClientOptions/ownConnectionsMax`` of them are in use, for as long as a call may take.
    /// - Throws: what `body` throws, and `noDaemon`, `timeout` and the like when there is no connection to be had.
    @discardableResult
    public func withConnection<Result>(
        _ body: (OwnConnection) async throws -> Result
    ) async throws -> Result {
        try await core.own.ownConnections.withOwnConnection(body)
    }
}
