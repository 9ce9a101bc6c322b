import LarderPlatform

/// The subscribers of each channel.
///
/// The table consists of parts with a lock each, so that publishers on different loops seldom wait for each other. The
/// lock of a channel's part is held while the channel's subscribers change, and while a message is queued for them. So
/// when a connection has unsubscribed, no more messages of the channel are queued for it.
///
/// `@unchecked Sendable`: each part has its own lock.
final class ChannelTable: @unchecked Sendable {
    private final class Part {
        let lock = Lock()
        var audiences: [[UInt8]: Audience] = [:]
    }

    private let parts: [Part]

    private static let partCount = 16

    init() { parts = (0..<Self.partCount).map { _ in Part() } }

    private func part(_ channel: [UInt8]) -> Part {
        // Each part's dictionary has its own hash seed. So the channels of a part are spread evenly over the
        // dictionary's buckets, although the part was chosen by hash.
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

    func count(_ channel: [UInt8]) -> Int {
        let part = part(channel)
        return part.lock.withLock { part.audiences[channel]?.count ?? 0 }
    }

    /// Sends a message to all subscribers of a channel.
    /// - Parameter message: creates the message. It is called at most once, and only if there are subscribers.
    /// - Returns: the number of subscribers.
    func send(to channel: [UInt8], from: PushQueue?, _ message: () -> PushMessage) -> Int {
        let part = part(channel)
        return part.lock.withLock {
            guard let audience = part.audiences[channel] else { return 0 }
            audience.send(message(), from: from)
            return audience.count
        }
    }

    /// All channels with subscribers, in no particular order.
    var channels: [[UInt8]] { parts.flatMap { part in part.lock.withLock { Array(part.audiences.keys) } } }
}

/// The address of a connection for messages: its ID, and the queue of its event loop.
struct Subscriber: Sendable {
    let id: Int64
    let queue: PushQueue
}

/// The connections that get the same messages, grouped by event loop. A value type.
struct Audience: Sendable {
    private var groups: [(queue: PushQueue, connections: [Int64])] = []
    private(set) var count = 0

    /// Adds a connection that is not a member yet.
    mutating func add(_ subscriber: Subscriber) {
        count += 1
        if let index = groups.firstIndex(where: { $0.queue === subscriber.queue }) {
            groups[index].connections.append(subscriber.id)
        } else {
            groups.append((subscriber.queue, [subscriber.id]))
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
    /// - Parameter from: the queue of the event loop that makes this call; nil if another thread makes it.
    func send(_ message: PushMessage, from: PushQueue?) {
        for group in groups {
            group.queue.add(PushQueue.Delivery(message: message, connections: group.connections), from: from)
        }
    }
}
