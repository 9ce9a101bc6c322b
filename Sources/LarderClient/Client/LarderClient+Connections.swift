// Exclusive connections.

extension LarderClient {
    /// Runs `body` with an exclusive connection to the client's database, and closes the connection afterwards.
    ///
    /// ```swift
    /// let both = try await client.withConnection { connection in
    ///     try await connection.command("SNAPSHOT", "OPEN")
    ///     return [try await connection.command("GET", "a"), try await connection.command("GET", "b")]
    /// }
    /// ```
    /// If ``ClientOptions/ownConnectionsMax`` such connections are in use, the call waits for a free one, for at most
    /// ``ClientOptions/timeoutMilliseconds``.
    /// - Throws: errors of `body`; `noDaemon`, `timeout` and similar errors if no connection can be made.
    @discardableResult
    public func withConnection<Result>(
        _ body: (OwnConnection) async throws -> Result
    ) async throws -> Result {
        try await core.own.ownConnections.withOwnConnection(body)
    }
}
