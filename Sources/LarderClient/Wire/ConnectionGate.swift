import Synchronization
import Threading

/// A connection that can be kept waiting.
protocol GatedConnection: AnyObject, Sendable {
    /// Ends its wait.
    func release()
    /// Has it made now, if it rests between two attempts.
    func retryNow()
}

/// Keeps calls of a client back while its subscriptions are being made again: who sees a call succeed after a connection
/// was lost knows that what is published from then on arrives.
///
/// While it is closed, connections that have just been made wait with what is to be sent on them, for a while at the most:
/// a daemon that takes no subscriptions does not keep calls from it.
///
/// Thread-safe. The proof for `@unchecked Sendable`: mutable properties are touched only with `lock` held. That lock is
/// held alone.
final class ConnectionGate: @unchecked Sendable {
    /// How long a connection waits at the most, in milliseconds.
    static let patienceMilliseconds: Int64 = 1_000

    private let closed = Atomic<Bool>(false)
    private let lock = Lock()
    private var held: [any GatedConnection] = []
    /// The connection of the subscriptions; it is the one that must not wait for itself.
    private weak var subscriptions: (any GatedConnection)?

    /// Whether connections are to wait.
    var isClosed: Bool { closed.load(ordering: .acquiring) }

    /// The subscriptions' connection was lost.
    func close(for link: any GatedConnection) {
        lock.withLock { subscriptions = link }
        closed.store(true, ordering: .releasing)
    }

    /// The subscriptions stand again, or nobody wants them any more.
    func open() {
        closed.store(false, ordering: .releasing)
        let links = lock.withLock {
            defer { held = [] }
            return held
        }
        for link in links { link.release() }
    }

    /// Notes a connection that waits, and has the subscriptions' own made now: there is a daemon again.
    func hold(_ link: any GatedConnection) {
        let subscriptions = lock.withLock {
            held.append(link)
            return self.subscriptions
        }
        // Opened just now: then nobody else releases it.
        guard isClosed else { return open() }
        subscriptions?.retryNow()
    }
}
