import LarderPlatform

/// Which connections of the server listen to which channels.
///
/// The table has parts, each with its own lock, held for a change or while a message is put into the queues of the
/// loops. So publishers on several loops seldom meet, and a connection that has stopped listening finds all of its last
/// messages in its queue.
///
/// Thread-safe. The proof for `@unchecked Sendable`: each part is read and written with its lock held.
final class ChannelTable: @unchecked Sendable {
    private final class Part {
        let lock = Lock()
        var audiences: [[UInt8]: Audience] = [:]
    }

    private let parts: [Part]

    private static let partCount = 16

    init() { parts = (0..<Self.partCount).map { _ in Part() } }

    private func part(_ channel: [UInt8]) -> Part {
        // The dictionary in each part hashes with another seed.
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

    /// How many connections listen to a channel.
    func count(_ channel: [UInt8]) -> Int {
        let part = part(channel)
        return part.lock.withLock { part.audiences[channel]?.count ?? 0 }
    }

    /// Sends a message to all who listen to a channel.
    /// - Parameter message: called once, if anybody listens.
    /// - Returns: how many listen.
    func send(to channel: [UInt8], from: PushQueue?, _ message: () -> PushMessage) -> Int {
        let part = part(channel)
        return part.lock.withLock {
            guard let audience = part.audiences[channel] else { return 0 }
            audience.send(message(), from: from)
            return audience.count
        }
    }

    /// The channels to which somebody listens, in no order.
    var channels: [[UInt8]] { parts.flatMap { part in part.lock.withLock { Array(part.audiences.keys) } } }
}

/// A connection, for those who send it messages: its number, and the queue of its loop.
struct Subscriber: Sendable {
    let id: Int64
    let queue: PushQueue
}

/// All connections that get the same messages, loop by loop. A value: a copy costs a reference.
struct Audience: Sendable {
    private struct Group: Sendable {
        let queue: PushQueue
        var connections: [Int64]
    }

    private var groups: [Group] = []
    private(set) var count = 0

    /// Adds a connection that is not in it.
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

    /// Puts a message into the queues of all.
    /// - Parameter from: the queue of the loop that calls this, if a loop does.
    func send(_ message: PushMessage, from: PushQueue?) {
        for group in groups {
            group.queue.add(PushQueue.Delivery(message: message, connections: group.connections), from: from)
        }
    }
}
