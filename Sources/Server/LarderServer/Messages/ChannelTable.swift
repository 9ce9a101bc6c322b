import LarderPlatform

/// The subscribers of each channel.
///
/// The table has parts, each with its own lock, which is held for a change or while a message is added to the queues of
/// the loops. So publishers on several loops seldom contend, and a connection that has unsubscribed finds all of its
/// last messages in its queue.
///
/// `@unchecked Sendable`: the parts are guarded by their locks.
final class ChannelTable: @unchecked Sendable {
    private final class Part {
        let lock = Lock()
        var audiences: [[UInt8]: Audience] = [:]
    }

    private let parts: [Part]

    private static let partCount = 16

    init() { parts = (0..<Self.partCount).map { _ in Part() } }

    private func part(_ channel: [UInt8]) -> Part {
        // Choosing the part by hash does not cluster keys in its dictionary, because each dictionary has its own hash
        // seed.
        parts[(channel.hashValue >> 7) & (Self.partCount - 1)]
    }

    func add(_ channel: [UInt8], _ subscriber: Subscriber) {
        let part = part(channel)
        part.lock.withLock { part.audiences[channel, default: Audience()].add(subscriber) }
    }

    func remove(_ channel: [UInt8], _ subscriber: Subscriber) {
        let part = part(channel)
        part.lock.withLock {
            part.audiences[channel]?.remove(subscriber)
            if part.audiences[channel]?.count == 0 { part.audiences[channel] = nil }
        }
    }

    /// The number of subscribers of a channel.
    func count(_ channel: [UInt8]) -> Int {
        let part = part(channel)
        return part.lock.withLock { part.audiences[channel]?.count ?? 0 }
    }

    /// Sends a message to all subscribers of a channel.
    /// - Parameter message: called once, if there are subscribers.
    /// - Returns: the number of subscribers.
    func send(to channel: [UInt8], from: PushQueue?, _ message: () -> PushMessage) -> Int {
        let part = part(channel)
        return part.lock.withLock {
            guard let audience = part.audiences[channel] else { return 0 }
            audience.send(message(), from: from)
            return audience.count
        }
    }

    /// The channels with subscribers, in no order.
    var channels: [[UInt8]] { parts.flatMap { part in part.lock.withLock { Array(part.audiences.keys) } } }
}

/// A connection as a receiver of messages: its ID, and the queue of its loop.
struct Subscriber: Sendable {
    let id: Int64
    let queue: PushQueue
}

/// All connections that get the same messages, grouped by loop. A value type; copying it only copies a reference.
struct Audience: Sendable {
    private struct Group: Sendable {
        let queue: PushQueue
        var connections: [Int64]
    }

    private var groups: [Group] = []
    private(set) var count = 0

    /// Adds a connection that is not a member yet.
    mutating func add(_ subscriber: Subscriber) {
        count += 1
        if let index = groups.firstIndex(where: { $0.queue === subscriber.queue }) {
            groups[index].connections.append(subscriber.id)
        } else {
            groups.append(Group(queue: subscriber.queue, connections: [subscriber.id]))
        }
    }

    mutating func remove(_ subscriber: Subscriber) {
        guard let group = groups.firstIndex(where: { $0.queue === subscriber.queue }),
            let index = groups[group].connections.lastIndex(of: subscriber.id)
        else { return }
        groups[group].connections.remove(at: index)
        if groups[group].connections.isEmpty { groups.remove(at: group) }
        count -= 1
    }

    /// Adds a message to the queues of all members.
    /// - Parameter from: the queue of the calling loop, if a loop calls this.
    func send(_ message: PushMessage, from: PushQueue?) {
        for group in groups {
            group.queue.add(PushQueue.Delivery(message: message, connections: group.connections), from: from)
        }
    }
}
