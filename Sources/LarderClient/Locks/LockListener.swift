import LarderFetching
import Synchronization

/// Wakes a waiter when the daemon reports a change of the lock's entry.
///
/// Thread-safe, because all its properties are.
final class LockListener: TopicListener {
    let wakeUp = WakeUp()
    /// Whether the client was closed or the subscription has failed. There are no further wake-ups then.
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
