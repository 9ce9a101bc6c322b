import LarderPlatform
import LarderVocabulary
import Synchronization

/// A message to publish, and the channel or sharded channel to publish it on.
struct Publication: Sendable {
    var kind = PubSub.Kind.channel
    let channel: [UInt8]
    let payload: [UInt8]
}

/// Publishes messages to the subscribers of channels, patterns and sharded channels. A sharded channel and a channel of
/// the same name are different. Thread-safe.
final class PubSub: Sendable {
    /// The kinds of names that a client can subscribe to.
    enum Kind: Hashable, CaseIterable, Sendable {
        case channel, pattern, shardChannel
    }

    private struct Pattern: Sendable {
        let glob: GlobPattern
        /// Increases with each new pattern. A message that matches several patterns is sent in this order.
        let number: Int
        var audience = Audience()
    }

    /// The size of all messages that wait in the queues of event loops.
    let pending = PendingBytes()
    private let pendingBytesMax: Int
    private let channels = ChannelTable()
    private let shardChannels = ChannelTable()
    private let patterns = Locked<[[UInt8]: Pattern]>([:])
    /// How many times a pattern got its first subscriber. The source of ``Pattern/number``.
    private let patternsSeen = Atomic<Int>(0)
    private let patternCountNow = Atomic<Int>(0)
    /// The number of subscriptions to channels for changes, and a function that is called when such a subscription is
    /// added, and when the last one ends.
    private struct ChangeTopics {
        var count = 0
        var changed: ChangeTopicsObserver = { _, _, _ in }
    }

    private let changeTopics = Locked(ChangeTopics())

    typealias ChangeTopicsObserver = @Sendable (_ name: [UInt8], _ isFirst: Bool, _ isLast: Bool) -> Void

    init(pendingBytesMax: Int) { self.pendingBytesMax = pendingBytesMax }

    /// Whether publishers must wait because too many messages have not been delivered. Costs one atomic load.
    var isCongested: Bool { pending.bytes.read() > pendingBytesMax }

    // MARK: Subscribing

    /// Adds a subscription that the connection does not have yet.
    func add(_ subscriber: Subscriber, to name: [UInt8], _ kind: Kind) {
        if kind != .shardChannel, ChangeChannels.isOne(name) { countChangeTopic(name, 1) }
        switch kind {
        case .channel: channels.add(name, subscriber)
        case .shardChannel: shardChannels.add(name, subscriber)
        case .pattern:
            patterns.withLock { patterns in
                if patterns[name] == nil {
                    let number = patternsSeen.wrappingAdd(1, ordering: .relaxed).newValue
                    patterns[name] = Pattern(glob: GlobPattern(name), number: number)
                    patternCountNow.store(patterns.count, ordering: .relaxed)
                }
                patterns[name]?.audience.add(subscriber)
            }
        }
    }

    func remove(_ subscriber: Subscriber, from name: [UInt8], _ kind: Kind) {
        if kind != .shardChannel, ChangeChannels.isOne(name) { countChangeTopic(name, -1) }
        switch kind {
        case .channel: channels.remove(name, subscriber)
        case .shardChannel: shardChannels.remove(name, subscriber)
        case .pattern:
            patterns.withLock { patterns in
                patterns[name]?.audience.remove(subscriber)
                if patterns[name]?.audience.count == 0 {
                    patterns[name] = nil
                    patternCountNow.store(patterns.count, ordering: .relaxed)
                }
            }
        }
    }

    /// Sets a function that is called for each new subscription to changes, before the subscriber gets a message. The
    /// function is also called when the last such subscription ends. Its calls never overlap.
    func onChangeTopics(_ body: @escaping ChangeTopicsObserver) { changeTopics.withLock { $0.changed = body } }

    private func countChangeTopic(_ name: [UInt8], _ step: Int) {
        changeTopics.withLock {
            $0.count += step
            if step > 0 || $0.count == 0 { $0.changed(name, step > 0 && $0.count == 1, $0.count == 0) }
        }
    }

    // MARK: Publishing

    /// Sends a message to the subscribers of its channel, and of matching patterns. Patterns match no sharded channels.
    /// - Parameter from: the queue of the event loop that makes this call; nil if another thread makes it.
    /// - Returns: the number of subscriptions to which the message was sent.
    func publish(_ publication: Publication, from: PushQueue? = nil) -> Int {
        let (channel, payload) = (publication.channel, publication.payload)
        guard publication.kind == .channel else {
            return shardChannels.send(to: channel, from: from) { .message("smessage", channel: channel, payload) }
        }
        var count = channels.send(to: channel, from: from) { .message("message", channel: channel, payload) }
        guard patternCountNow.read() > 0 else { return count }
        // Compare the patterns without holding the lock, because publishers on all loops use the lock.
        let matching = patterns.withLock({ $0 }).filter { $0.value.glob.matches(channel) }
        for (name, _) in matching.sorted(by: { $0.value.number < $1.value.number }) {
            let message = PushMessage.message(pattern: name, channel: channel, payload)
            count += patterns.withLock { patterns in
                guard let audience = patterns[name]?.audience else { return 0 }
                audience.send(message, from: from)
                return audience.count
            }
        }
        return count
    }

    /// Sends a change to the subscribers of its channel, and of matching patterns that begin like channels for changes.
    /// Subscribers of other matching patterns, such as `*`, do not receive the change.
    func publishChange(_ channel: [UInt8], _ payload: [UInt8]) {
        _ = channels.send(to: channel, from: nil) { .message("message", channel: channel, payload) }
        guard patternCountNow.read() > 0 else { return }
        let matching = patterns.withLock { $0 }.filter {
            ChangeChannels.isOne($0.key) && $0.value.glob.matches(channel)
        }
        for (name, pattern) in matching.sorted(by: { $0.value.number < $1.value.number }) {
            pattern.audience.send(.message(pattern: name, channel: channel, payload), from: nil)
        }
    }

    /// Returns the number of subscriptions to which a message would be sent.
    func count(_ publication: Publication) -> Int {
        guard publication.kind == .channel else { return shardChannels.count(publication.channel) }
        return patterns.withLock { $0 }.values.filter { $0.glob.matches(publication.channel) }
            .reduce(channels.count(publication.channel)) { $0 + $1.audience.count }
    }

    // MARK: Queries

    /// Returns the names of one kind that have subscribers and match a pattern, in no particular order.
    func names(_ kind: Kind, matching pattern: GlobPattern?) -> [[UInt8]] {
        let all =
            switch kind {
            case .channel: channels.channels
            case .shardChannel: shardChannels.channels
            case .pattern: patterns.withLock { Array($0.keys) }
            }
        return pattern.map { pattern in all.filter { pattern.matches($0) } } ?? all
    }

    func count(_ channel: [UInt8], isSharded: Bool) -> Int { (isSharded ? shardChannels : channels).count(channel) }

    /// The number of different patterns.
    var patternCount: Int { patternCountNow.read() }
}
