import LarderPlatform

/// The clock that determines how long a holder's lock is valid. It continues while the machine sleeps. A value type.
struct LockClock: Sendable {
    /// Milliseconds since a fixed instant.
    let now: @Sendable () -> Int64
    /// Sleeps for the given number of milliseconds; throws if the task is cancelled.
    let sleep: @Sendable (Int64) async throws -> Void

    static let system = {
        let start = ContinuousClock.now
        return LockClock(
            now: {
                let span = start.duration(to: .now).components
                return span.seconds * 1_000 + span.attoseconds / 1_000_000_000_000_000
            },
            sleep: { try await Task.sleep(for: .milliseconds($0), clock: .continuous) })
    }()
}
