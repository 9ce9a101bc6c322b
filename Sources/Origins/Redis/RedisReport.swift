import Platform

/// The counters of an origin, and its servers as they were last. Thread-safe.
///
/// The proof for `@unchecked Sendable`: everything is read and written with the lock held.
final class RedisReport: @unchecked Sendable {
    private let lock = Lock()
    private var status = OriginStatus()

    var all: OriginStatus { lock.withLock { status } }

    // One thread writes, so reading and writing need not be one step.
    var servers: [OriginStatus.Server] {
        get { lock.withLock { status.servers } }
        set { lock.withLock { status.servers = newValue } }
    }
    var commands: Int {
        get { lock.withLock { status.commands } }
        set { lock.withLock { status.commands = newValue } }
    }
    var timeouts: Int {
        get { lock.withLock { status.timeouts } }
        set { lock.withLock { status.timeouts = newValue } }
    }
    var epochsEnded: Int {
        get { lock.withLock { status.epochsEnded } }
        set { lock.withLock { status.epochsEnded = newValue } }
    }
    var redirections: Int {
        get { lock.withLock { status.redirections } }
        set { lock.withLock { status.redirections = newValue } }
    }

    func countInvalidations(_ count: Int) { lock.withLock { status.invalidations += count } }

    func count(_ results: [Result<OriginReading, OriginError>]) {
        lock.withLock {
            for result in results {
                switch result {
                case .success(let reading):
                    status.reads += 1
                    if reading.value == nil { status.absentReads += 1 }
                case .failure: status.failures += 1
                }
            }
        }
    }

    func count<Success>(_ result: Result<Success, OriginError>) {
        if case .failure = result { lock.withLock { status.failures += 1 } }
    }
}
