import LarderPlatform
import Synchronization

/// A connection that waits while a ``ConnectionGate`` is closed.
protocol GatedConnection: AnyObject, Sendable {
    /// Ends the connection's wait.
    func release()
    /// Connects now if the link is backing off between two attempts.
    func retryNow()
}

/// Delays calls of a client after a connection loss until its subscriptions are restored. So the client receives all
/// messages that are published after a successful call.
///
/// While the gate is closed, new connections wait before they send requests. They wait only for a limited time, so that
/// a daemon that refuses subscriptions does not block calls.
///
/// Thread-safe. `@unchecked Sendable`: mutable properties are guarded by `lock`; no other lock is taken while it is
/// held.
final class ConnectionGate: @unchecked Sendable {
    /// The longest wait of a connection, in milliseconds.
    static let patienceMilliseconds: Int64 = 1_000

    private let closed = Atomic<Bool>(false)
    private let lock = Lock()
    private var held: [any GatedConnection] = []
    /// The connection of the subscriptions, which must not wait for itself.
    private weak var subscriptions: (any GatedConnection)?

    /// Whether connections must wait.
    var isClosed: Bool { closed.load(ordering: .acquiring) }

    /// Closes the gate because the subscriptions' connection was lost.
    func close(for link: any GatedConnection) {
        lock.withLock { subscriptions = link }
        closed.store(true, ordering: .releasing)
    }

    /// Opens the gate because the subscriptions are restored or no longer needed.
    func open() {
        closed.store(false, ordering: .releasing)
        let links = lock.withLock {
            defer { held = [] }
            return held
        }
        for link in links { link.release() }
    }

    /// Registers a waiting connection. Also ends the back-off of the subscriptions' connection, because the daemon is
    /// running again.
    func hold(_ link: any GatedConnection) {
        let subscriptions = lock.withLock {
            held.append(link)
            return self.subscriptions
        }
        // If the gate was opened in the meantime, release the link now, because nothing else would.
        guard isClosed else { return open() }
        subscriptions?.retryNow()
    }
}
