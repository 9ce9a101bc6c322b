import LarderPlatform
import Synchronization

/// The queue of messages for the connections of one event loop.
///
/// - Any thread may add messages. The loop delivers them in the order in which they were added, so the messages of one
///   publisher stay in order.
/// - Adding several messages before the loop runs wakes the loop only once.
///
/// Thread-safe, except for members "for the loop". `@unchecked Sendable`: `lock` guards the messages. ``deliver`` is
/// set before messages are added, and only the loop calls it.
final class PushQueue: @unchecked Sendable {
    /// A message, and the connections that receive it.
    struct Delivery: Sendable {
        let message: PushMessage
        /// The IDs of connections of this event loop. Connections that were closed are skipped.
        var connections: [Int64] = []
        /// For a line of MONITOR, all connections of the loop that receive it; nil for other messages.
        var monitors: MonitorGroup?
    }

    private let lock = Lock()
    private var waiting: [Delivery] = []
    private var wake: (() -> Void)?
    private let hasWaiting = Atomic<Bool>(false)
    /// The size of the messages in all queues of the server.
    private let pending: PendingBytes
    /// Passes one message to its connections. The loop sets this closure once, and is the only caller.
    var deliver: (Delivery) -> Void = { _ in }

    init(_ pending: PendingBytes) { self.pending = pending }

    /// Sets the function that wakes the loop. After waking, the loop must call ``deliverAll()``.
    /// - Parameter wake: called with `lock` held, on any thread; nil after the loop has stopped.
    func onAdded(_ wake: (() -> Void)?) { lock.withLock { self.wake = wake } }

    /// Adds a message.
    /// - Parameter from: the queue of the calling event loop, which need not be woken; nil if another thread calls.
    func add(_ delivery: Delivery, from: PushQueue? = nil) {
        pending.bytes.add(delivery.message.byteCount)
        lock.withLock {
            waiting.append(delivery)
            guard waiting.count == 1 else { return }
            hasWaiting.store(true, ordering: .releasing)
            if from !== self { wake?() }
        }
    }

    /// Whether no message is waiting. Costs one atomic load.
    var isEmpty: Bool { !hasWaiting.load(ordering: .acquiring) }

    /// Delivers all waiting messages. For the loop: only its thread may call this.
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

/// The number of bytes of messages that wait for delivery. Thread-safe.
final class PendingBytes: Sendable {
    let bytes = Atomic<Int>(0)
}

/// The connections of one event loop whose clients have sent MONITOR. When a client begins or ends MONITOR, a new group
/// replaces this one.
///
/// Thread-safe: immutable.
final class MonitorGroup: Sendable {
    let members: [Int64]
    init(_ members: [Int64]) { self.members = members }
}
