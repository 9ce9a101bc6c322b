import Testing

/// Waits for something that a server or another task brings about. If it does not come, the test fails here, and goes on,
/// instead of waiting for ever. Not for measuring: the limit of a minute is far beyond what any machine needs.
/// - Parameter what: what is waited for, for people.
func expectEvent(
    _ what: String, sourceLocation: SourceLocation = #_sourceLocation, _ hasCome: () async throws -> Bool
) async throws {
    let end = ContinuousClock.now + .seconds(60)
    while try await !hasCome() {
        guard ContinuousClock.now < end else {
            Issue.record("after a minute there is still none of this: \(what)", sourceLocation: sourceLocation)
            return
        }
        await Task.yield()
    }
}
