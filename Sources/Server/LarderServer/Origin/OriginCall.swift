import LarderOriginClients
import LarderPlatform
import LarderRESP
import Synchronization

/// The state of a command that waits for an origin. The command's session owns it; the origin's threads add the
/// replies. Thread-safe.
final class OriginCall: Sendable {
    /// When the command started, in nanoseconds of the monotonic clock. If a value was requested from the origin after
    /// this time, it is recent enough for the command.
    let startedAt: Int64
    let isWoken = Atomic<Bool>(false)
    private let wakeUp: (@Sendable () -> Void)?
    private let state = Locked(State())

    private struct State: Sendable {
        var pending = 0
        var readings: [[UInt8]: Result<OriginReading, OriginError>] = [:]
        /// The replies of replicas, by key, that arrived before the primary's reply. Their values may be arbitrarily
        /// old.
        var early: [[UInt8]: OriginReading] = [:]
        var hasNews = false
        var reply: Result<RESPValue, OriginError>?
    }

    init(startedAt: Int64, wakeUp: (@Sendable () -> Void)?) { (self.startedAt, self.wakeUp) = (startedAt, wakeUp) }

    var waitedMilliseconds: Int64 { (MonotonicClock.nanoseconds() - startedAt) / 1_000_000 }

    var isComplete: Bool { state.withLock { $0.pending == 0 } }

    func reading(_ key: [UInt8]) -> Result<OriginReading, OriginError>? { state.withLock { $0.readings[key] } }

    /// The origin's reply to a command that was forwarded; nil if there is none yet.
    func takeReply() -> Result<RESPValue, OriginError>? { state.withLock { $0.reply } }

    /// The error of a failed read; nil if no read has failed.
    var failure: OriginError? {
        state.withLock {
            for reading in $0.readings.values { if case .failure(let error) = reading { return error } }
            return nil
        }
    }

    /// Increases the number of replies to wait for.
    func expect(_ count: Int) {
        state.withLock {
            $0.pending += count
            isWoken.store(false, ordering: .releasing)
        }
    }

    func take(_ key: [UInt8], _ reading: Result<OriginReading, OriginError>) {
        end { $0.readings[key] = reading }
    }

    /// The reply of a replica for a key; nil if there is none.
    func early(_ key: [UInt8]) -> OriginReading? { state.withLock { $0.early[key] } }

    /// Returns whether a replica has replied since the last call. If the command still waits for primaries, clears the
    /// wake-up flag, so that the next reply can wake the command again.
    func takeNews() -> Bool {
        state.withLock { state in
            defer { state.hasNews = false }
            if state.pending > 0 { isWoken.store(false, ordering: .releasing) }
            return state.hasNews
        }
    }

    func take(_ key: [UInt8], early reading: OriginReading) {
        let isNew = state.withLock {
            // A command that joined a running read can receive the same early reply twice: ignore the second one.
            guard $0.early.updateValue(reading, forKey: key) == nil else { return false }
            $0.hasNews = true
            isWoken.store(true, ordering: .releasing)
            return true
        }
        if isNew { wakeUp?() }
    }

    func take(reply: Result<RESPValue, OriginError>) { end { $0.reply = reply } }

    private func end(_ body: (inout State) -> Void) {
        let isComplete = state.withLock {
            body(&$0)
            $0.pending -= 1
            if $0.pending == 0 { isWoken.store(true, ordering: .releasing) }
            return $0.pending == 0
        }
        if isComplete { wakeUp?() }
    }
}
