import LarderEngine
import Platform
import RESP
import Synchronization

/// The settings that CONFIG SET can change while the daemon runs and that no other object owns.
///
/// Thread-safe. The proof for `@unchecked Sendable`: the texts are read and written with the lock held, the rest is atomic.
final class Settings: @unchecked Sendable {
    /// Connections at a time.
    let clientsMax: Atomic<Int>
    /// Seconds without a request after which a connection is closed; 0 for never.
    let idleSeconds = Atomic<Int>(0)
    /// How much a subscriber may leave unread: see ``OutputLimit``.
    let subscriberBytesMax: Atomic<Int>
    let subscriberBytesSoft: Atomic<Int>
    let subscriberSoftSeconds: Atomic<Int>
    private let lock = Lock()
    private var texts: [String: String] = [:]

    init(limits: Limits) {
        clientsMax = Atomic(limits.clientsMax)
        subscriberBytesMax = Atomic(limits.subscriberBytesMax)
        subscriberBytesSoft = Atomic(limits.subscriberBytesSoft)
        subscriberSoftSeconds = Atomic(Int(limits.subscriberSoftMilliseconds / 1000))
    }

    /// A setting that is stored and has no effect.
    func text(_ name: String) -> String? { lock.withLock { texts[name] } }
    func keep(_ name: String, _ text: String) { lock.withLock { texts[name] = text } }
}
