import LarderEngine
import LarderPlatform
import LarderRESP
import Synchronization

/// Settings that CONFIG SET can change while the daemon runs. Other objects store further settings.
///
/// `@unchecked Sendable`: the texts are guarded by `lock`; the rest is atomic.
final class Settings: @unchecked Sendable {
    /// The limit for the number of open connections.
    let clientsMax: Atomic<Int>
    /// How long a connection may send no request before it is closed, in seconds; 0 for no limit.
    let idleSeconds: Atomic<Int>
    /// The limits of a subscriber's unread messages: see ``OutputLimit``.
    let subscriberBytesMax: Atomic<Int>
    let subscriberBytesSoft: Atomic<Int>
    let subscriberSoftSeconds: Atomic<Int>
    private let lock = Lock()
    private var texts: [String: String] = [:]
    private var passwordNow: [UInt8]?
    private var passwordPathNow = ""

    init(limits: Limits, password: [UInt8]? = nil, passwordPath: String = "") {
        passwordNow = password
        passwordPathNow = passwordPath
        idleSeconds = Atomic(limits.idleSeconds)
        clientsMax = Atomic(limits.clientsMax)
        subscriberBytesMax = Atomic(limits.subscriberBytesMax)
        subscriberBytesSoft = Atomic(limits.subscriberBytesSoft)
        subscriberSoftSeconds = Atomic(Int(limits.subscriberSoftMilliseconds / 1000))
    }

    /// The password for AUTH; nil for none.
    var password: [UInt8]? { lock.withLock { passwordNow } }
    /// The path of the file that contains the password; empty for none.
    var passwordPath: String { lock.withLock { passwordPathNow } }

    /// Changes the password. Authenticated connections stay authenticated.
    func change(password: [UInt8]?, path: String) {
        lock.withLock {
            passwordNow = password
            passwordPathNow = path
        }
    }

    func changeSubscriberLimit(_ limits: Limits) {
        subscriberBytesMax.store(limits.subscriberBytesMax, ordering: .relaxed)
        subscriberBytesSoft.store(limits.subscriberBytesSoft, ordering: .relaxed)
        subscriberSoftSeconds.store(Int(limits.subscriberSoftMilliseconds / 1000), ordering: .relaxed)
    }

    /// The text of a setting without effect, which is stored only for CONFIG GET; nil if it was never set.
    func text(_ name: String) -> String? { lock.withLock { texts[name] } }
    func keep(_ name: String, _ text: String) { lock.withLock { texts[name] = text } }
}
