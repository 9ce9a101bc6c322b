import LarderPlatform
import Synchronization

/// The queue of messages for the connections of one event loop.
///
/// - Any thread may add messages. The loop delivers them in the order in which they were added, so the messages of one
///   publisher stay in order.
/// - Adding several messages before the loop runs wakes the loop only once.
/// - Messages of live queries, which may have many bytes, are delivered apart from the others, some in each turn.
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
    /// Messages of live queries.
    private var live = Deque<Delivery>()
    private var wake: (() -> Void)?
    private let hasWaiting = Atomic<Bool>(false)
    private let hasLive = Atomic<Bool>(false)
    /// The size of the messages in all queues of the server.
    private let pending: PendingBytes
    /// Passes one message to its connections. The loop sets this closure once, and is the only caller.
    var deliver: (Delivery) -> Void = { _ in }

    init(_ pending: PendingBytes) { self.pending = pending }

    /// Sets the function that wakes the loop. After waking, the loop must call ``deliverAll()`` and ``deliverLive(upTo:)``.
    /// - Parameter wake: called with `lock` held, on any thread; nil after the loop has stopped.
    func onAdded(_ wake: (() -> Void)?) { lock.withLock { self.wake = wake } }

    /// Adds a message.
    /// - Parameter from: the queue of the calling event loop, which need not be woken; nil if another thread calls.
    func add(_ delivery: Delivery, from: PushQueue? = nil) {
        pending.bytes.add(delivery.message.byteCount)
        lock.withLock {
            let isFirst = waiting.isEmpty && live.isEmpty
            if delivery.message.query == nil {
                waiting.append(delivery)
                hasWaiting.store(true, ordering: .releasing)
            } else {
                live.append(delivery)
                hasLive.store(true, ordering: .releasing)
            }
            if isFirst, from !== self { wake?() }
        }
    }

    /// Whether no message is waiting, except those of live queries. Costs one atomic load.
    var isEmpty: Bool { !hasWaiting.load(ordering: .acquiring) }

    /// Delivers all waiting messages, except those of live queries. For the loop: only its thread may call this.
    func deliverAll() {
        while !isEmpty {
            let taken = lock.withLock {
                defer { waiting = [] }
                hasWaiting.store(false, ordering: .releasing)
                return waiting
            }
            pass(taken)
        }
    }

    /// Delivers messages of live queries until these have at least `bytesMax` bytes. For the loop: only its thread may
    /// call this.
    /// - Returns: whether messages are left, so that the loop must call this again.
    func deliverLive(upTo bytesMax: Int) -> Bool {
        guard hasLive.load(ordering: .acquiring) else { return false }
        let (taken, isMore) = lock.withLock {
            var (taken, bytes) = ([Delivery](), 0)
            while bytes < bytesMax, let next = live.popFirst() {
                bytes += next.message.byteCount
                taken.append(next)
            }
            hasLive.store(!live.isEmpty, ordering: .releasing)
            return (taken, !live.isEmpty)
        }
        pass(taken)
        return isMore
    }

    private func pass(_ taken: [Delivery]) {
        for delivery in taken {
            pending.bytes.add(-delivery.message.byteCount)
            deliver(delivery)
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
