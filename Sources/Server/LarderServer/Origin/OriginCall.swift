import LarderOriginClients
import LarderPlatform
import LarderRESP
import Synchronization

/// What a command that waits for an origin has got from it so far. Its session owns it; the origin's threads fill it.
///
/// Thread-safe. The proof for `@unchecked Sendable`: all below "guarded" is read and written with the lock held.
final class OriginCall: @unchecked Sendable {
    /// When the command began, in nanoseconds of the monotonic clock: what was read later is new enough for it.
    let startedAt: Int64
    let isWoken = Atomic<Bool>(false)
    private let wakeUp: (@Sendable () -> Void)?
    private let lock = Lock()
    // Guarded:
    private var pending = 0
    private var readings: [[UInt8]: Result<OriginReading, OriginError>] = [:]
    /// What replicas have said meanwhile: it may be older than any bound.
    private var early: [[UInt8]: OriginReading] = [:]
    private var hasNews = false
    private var reply: Result<RESPValue, OriginError>?

    init(startedAt: Int64, wakeUp: (@Sendable () -> Void)?) {
        self.startedAt = startedAt
        self.wakeUp = wakeUp
    }

    /// How long the command has waited.
    var waitedMilliseconds: Int64 { (MonotonicClock.nanoseconds() - startedAt) / 1_000_000 }

    /// Whether nothing is waited for.
    var isComplete: Bool { lock.withLock { pending == 0 } }

    func reading(_ key: [UInt8]) -> Result<OriginReading, OriginError>? { lock.withLock { readings[key] } }

    /// The origin's answer to a command.
    func takeReply() -> Result<RESPValue, OriginError>? { lock.withLock { reply } }

    /// The first failure of a reading.
    var failure: OriginError? {
        lock.withLock {
            for reading in readings.values { if case .failure(let error) = reading { return error } }
            return nil
        }
    }

    /// So many answers will come.
    func expect(_ count: Int) {
        lock.withLock {
            pending += count
            isWoken.store(false, ordering: .releasing)
        }
    }

    func take(_ key: [UInt8], _ reading: Result<OriginReading, OriginError>) {
        end { readings[key] = reading }
    }

    /// What a replica has said of a key.
    func early(_ key: [UInt8]) -> OriginReading? { lock.withLock { early[key] } }

    /// Whether a replica has said something since the last call. The command goes on to wait unless that is enough for it.
    func takeNews() -> Bool {
        lock.withLock {
            defer { hasNews = false }
            if pending > 0 { isWoken.store(false, ordering: .releasing) }
            return hasNews
        }
    }

    func take(_ key: [UInt8], early reading: OriginReading) {
        let isNew = lock.withLock {
            // Who joins a question again hears it again.
            guard early.updateValue(reading, forKey: key) == nil else { return false }
            hasNews = true
            isWoken.store(true, ordering: .releasing)
            return true
        }
        if isNew { wakeUp?() }
    }

    func take(reply: Result<RESPValue, OriginError>) { end { self.reply = reply } }

    private func end(_ body: () -> Void) {
        let isComplete = lock.withLock {
            body()
            pending -= 1
            if pending == 0 { isWoken.store(true, ordering: .releasing) }
            return pending == 0
        }
        if isComplete { wakeUp?() }
    }
}
