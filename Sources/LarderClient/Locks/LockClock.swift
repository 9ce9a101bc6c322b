import LarderPlatform

/// The clock by which a holder knows how long its lock is good. It goes on while the machine sleeps. A value.
struct LockClock: Sendable {
    /// Milliseconds since some fixed instant.
    let now: @Sendable () -> Int64
    /// Sleeps for so many milliseconds; throws if the task is cancelled.
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
