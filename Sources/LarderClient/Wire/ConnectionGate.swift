import LarderPlatform
import Synchronization

/// A connection that can be made to wait.
protocol GatedConnection: AnyObject, Sendable {
    /// Ends its wait.
    func release()
    /// Connects now, if it rests between two attempts.
    func retryNow()
}

/// Holds back calls of a client while its subscriptions are being restored: when a call succeeds after a loss of the
/// connection, messages that are published from then on arrive.
///
/// While it is closed, new connections wait with their requests, for a limited time: a daemon that refuses
/// subscriptions does not block calls.
///
/// Thread-safe. The proof for `@unchecked Sendable`: mutable properties are touched only with `lock` held. That lock is
/// held alone.
final class ConnectionGate: @unchecked Sendable {
    /// How long a connection waits at most, in milliseconds.
    static let patienceMilliseconds: Int64 = 1_000

    private let closed = Atomic<Bool>(false)
    private let lock = Lock()
    private var held: [any GatedConnection] = []
    /// The connection of the subscriptions, which must not wait for itself.
    private weak var subscriptions: (any GatedConnection)?

    /// Whether connections must wait.
    var isClosed: Bool { closed.load(ordering: .acquiring) }

    /// The subscriptions' connection was lost.
    func close(for link: any GatedConnection) {
        lock.withLock { subscriptions = link }
        closed.store(true, ordering: .releasing)
    }

    /// The subscriptions are restored, or no longer wanted.
    func open() {
        closed.store(false, ordering: .releasing)
        let links = lock.withLock {
            defer { held = [] }
            return held
        }
        for link in links { link.release() }
    }

    /// Notes a waiting connection, and has the subscriptions' connection made now: there is a daemon again.
    func hold(_ link: any GatedConnection) {
        let subscriptions = lock.withLock {
            held.append(link)
            return self.subscriptions
        }
        // Opened meanwhile: then nobody else releases it.
        guard isClosed else { return open() }
        subscriptions?.retryNow()
    }
}
