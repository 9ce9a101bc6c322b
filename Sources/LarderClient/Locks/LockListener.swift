import Fetching

/// Wakes who waits for a lock when the daemon tells that its entry has changed.
///
/// Thread-safe: what changes is in the wake-up.
final class LockListener: TopicListener {
    let wakeUp = WakeUp()
    let topics: [Topic]

    init(_ name: LockName) {
        let channel = Array("__change@\(name.database)__".utf8)
        topics = [.channel(channel), .channel(channel + [UInt8(ascii: ":")] + name.key)]
    }

    func take(_ message: TopicMessage) { wakeUp.signal() }
    func connectionWasLost() { wakeUp.signal() }
    func isRestored() { wakeUp.signal() }
    func finish(_ error: LarderClientError?) { wakeUp.signal() }
}
