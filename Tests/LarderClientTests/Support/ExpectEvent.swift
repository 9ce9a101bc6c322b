import Testing

/// Waits for an effect of a server or another task. If the effect does not occur within a minute, the test fails here
/// and continues. Not for measuring, because a minute is far more than any machine needs.
/// - Parameter what: a description of the event.
func expectEvent(
    _ what: String, sourceLocation: SourceLocation = #_sourceLocation, _ hasCome: () async throws -> Bool
) async throws {
    let end = ContinuousClock.now + .seconds(60)
    while try await !hasCome() {
        guard ContinuousClock.now < end else {
            Issue.record("this did not happen within a minute: \(what)", sourceLocation: sourceLocation)
            return
        }
        await Task.yield()
    }
}
