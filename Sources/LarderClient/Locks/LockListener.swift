import LarderFetching
import Synchronization

/// Wakes who waits for a lock when the daemon tells that its entry has changed.
///
/// Thread-safe: what changes is in the wake-up.
final class LockListener: TopicListener {
    let wakeUp = WakeUp()
    /// Whether the client was closed: nobody wakes this any more.
    let isFinished = Atomic<Bool>(false)
    let topics: [Topic]

    init(_ name: LockName) {
        let channels = ChangeChannels(name.database)
        topics = [.channel(channels.all), .channel(channels.of(name.key))]
    }

    func take(_ message: TopicMessage) { wakeUp.signal() }
    func connectionWasLost() { wakeUp.signal() }
    func isRestored() { wakeUp.signal() }
    func finish(_ error: LarderClientError?) {
        isFinished.store(true, ordering: .releasing)
        wakeUp.signal()
    }
}
