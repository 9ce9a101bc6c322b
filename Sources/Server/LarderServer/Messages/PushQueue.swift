import LarderPlatform
import Synchronization

/// Messages on their way to the connections of one event loop.
///
/// - Any thread adds messages; the loop delivers them in the same order. So the messages of one publisher stay in
///   order.
/// - The loop is woken once for all messages added before it runs.
///
/// Thread-safe, except where a comment says "for the loop". `@unchecked Sendable`: the messages are guarded by `lock`;
/// ``deliver`` is set before messages are added, and is called by the loop only.
final class PushQueue: @unchecked Sendable {
    /// A message with the connections that get it.
    struct Delivery: Sendable {
        let message: PushMessage
        /// IDs of connections of this loop; closed ones are skipped.
        var connections: [Int64] = []
        /// The connections that get a line of MONITOR, all in the same form.
        var monitors: MonitorGroup?
    }

    private let lock = Lock()
    private var waiting: [Delivery] = []
    private var wake: (() -> Void)?
    private let hasWaiting = Atomic<Bool>(false)
    /// Bytes waiting in all queues of the server.
    private let pending: PendingBytes
    /// Delivers one message to its connections. Set once, by the loop.
    var deliver: (Delivery) -> Void = { _ in }

    init(_ pending: PendingBytes) { self.pending = pending }

    /// - Parameter wake: makes the loop call ``deliverAll()``; called with `lock` held, from any thread. Nil once the
    ///   loop has stopped.
    func onAdded(_ wake: (() -> Void)?) { lock.withLock { self.wake = wake } }

    /// - Parameter from: the queue of the calling loop, which need not be woken; nil for another thread, or if unknown.
    func add(_ delivery: Delivery, from: PushQueue? = nil) {
        pending.bytes.add(delivery.message.byteCount)
        lock.withLock {
            waiting.append(delivery)
            guard waiting.count == 1 else { return }
            hasWaiting.store(true, ordering: .releasing)
            if from !== self { wake?() }
        }
    }

    /// Whether no message is waiting. One atomic load.
    var isEmpty: Bool { !hasWaiting.load(ordering: .acquiring) }

    /// Delivers all waiting messages. For the loop.
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

/// The bytes of messages that wait for delivery. Thread-safe.
final class PendingBytes: Sendable {
    let bytes = Atomic<Int>(0)
}

/// The monitoring connections of one event loop; replaced when one starts or stops monitoring.
///
/// Thread-safe: immutable.
final class MonitorGroup: Sendable {
    let members: [Int64]
    init(_ members: [Int64]) { self.members = members }
}
