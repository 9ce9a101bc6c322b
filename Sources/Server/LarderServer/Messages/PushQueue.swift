import LarderPlatform
import Synchronization

/// Messages on their way to the connections of one event loop.
///
/// - Any thread adds messages; the loop delivers them in the same order. So the messages of one publisher stay in
///   order.
/// - The loop is woken once for all messages that are added before it comes.
///
/// Thread-safe, except where a comment says "for the loop". The proof for `@unchecked Sendable`: the messages are
/// guarded by the lock; ``deliver`` is set before anything is added, and called by the loop only.
final class PushQueue: @unchecked Sendable {
    /// A message with the connections that get it.
    struct Delivery: Sendable {
        let message: PushMessage
        /// Numbers of connections of this loop; those that are gone are skipped.
        var connections: [Int64] = []
        /// The connections of a line of MONITOR, which all get it in the same way.
        var monitors: MonitorGroup?
    }

    private let lock = Lock()
    private var waiting: [Delivery] = []
    private var wake: (() -> Void)?
    private let hasWaiting = Atomic<Bool>(false)
    /// Bytes that wait in all queues of the server.
    private let pending: PendingBytes
    /// Hands one message to its connections. Set once, by the loop.
    var deliver: (Delivery) -> Void = { _ in }

    init(_ pending: PendingBytes) { self.pending = pending }

    /// - Parameter wake: has the loop call ``deliverAll()``; called with the lock held, from any thread. Nil once the
    ///   loop has ended.
    func onAdded(_ wake: (() -> Void)?) { lock.withLock { self.wake = wake } }

    /// - Parameter from: the queue of the loop that calls this, which needs no waking; nil for another thread, or if
    ///   unknown.
    func add(_ delivery: Delivery, from: PushQueue? = nil) {
        pending.bytes.add(delivery.message.byteCount)
        lock.withLock {
            waiting.append(delivery)
            guard waiting.count == 1 else { return }
            hasWaiting.store(true, ordering: .releasing)
            if from !== self { wake?() }
        }
    }

    /// Whether a message waits. One atomic load.
    var isEmpty: Bool { !hasWaiting.load(ordering: .acquiring) }

    /// Delivers everything that waits. For the loop.
    func deliverAll() {
        while !isEmpty {
            let taken = lock.withLock {
                defer { waiting = [] }
                hasWaiting.store(false, ordering: .releasing)
                return waiting
            }
            for delivery in taken {
                pending.bytes.add(-delivery.message.byteCount)
                deliver(delivery)
            }
        }
    }
}

/// Bytes of messages that wait in queues to be delivered. Thread-safe.
final class PendingBytes: Sendable {
    let bytes = Atomic<Int>(0)
}

/// Connections of one event loop that monitor; made anew when one of them begins or ends.
///
/// Thread-safe: constant.
final class MonitorGroup: Sendable {
    let members: [Int64]
    init(_ members: [Int64]) { self.members = members }
}
