// All subscriptions of a client, over one connection.

import LarderPlatform
import LarderRESP
import LarderWire

/// A message as received from the daemon. A value type.
package struct TopicMessage {
    /// The subscription to which the daemon sent the message.
    let topic: Topic
    package let channel: [UInt8]
    package let payload: [UInt8]

    /// The matching pattern; nil for a subscription to the channel itself.
    package var pattern: [UInt8]? { topic.kind == .pattern ? topic.name : nil }

    /// Parses a pushed message, or its array form in RESP2. Returns nil for other ones, such as the confirmation of a
    /// subscription.
    init?(_ parts: [RESPValue]) {
        guard let kind = parts.first?.string, let name = parts.dropFirst().first?.bytes else { return nil }
        switch (kind, parts.count) {
        case ("message", 3): topic = .channel(name)
        case ("smessage", 3): topic = .shardChannel(name)
        case ("pmessage", 4): topic = .pattern(name)
        default: return nil
        }
        guard let channel = parts[parts.count - 2].bytes, let payload = parts[parts.count - 1].bytes else { return nil }
        (self.channel, self.payload) = (channel, payload)
    }
}

/// Receives the messages of some topics. Called on the loop's thread, and must not block.
protocol TopicListener: AnyObject, Sendable {
    func take(_ message: TopicMessage)
    /// Called when the connection was lost: messages may be missing from now on.
    func connectionWasLost()
    /// Called when the connection and the subscriptions are restored.
    func isRestored()
    /// Called when there will be no further messages: with the reason if it is an error, otherwise with nil.
    func finish(_ error: LarderClientError?)
}

/// A channel, a pattern of channels, or a sharded channel, to which a client can subscribe.
enum Topic: Hashable, Sendable {
    case channel([UInt8])
    case pattern([UInt8])
    case shardChannel([UInt8])

    var name: [UInt8] {
        switch self {
        case .channel(let name), .pattern(let name), .shardChannel(let name): name
        }
    }

    /// A kind of topic. The raw value is the prefix of the commands SUBSCRIBE and UNSUBSCRIBE for this kind.
    enum Kind: String, CaseIterable {
        case channel = ""
        case pattern = "P"
        case shardChannel = "S"
    }

    var kind: Kind {
        switch self {
        case .channel: .channel
        case .pattern: .pattern
        case .shardChannel: .shardChannel
        }
    }

    /// Returns the commands for some topics, one for each kind of topic.
    /// - Parameter command: SUBSCRIBE or UNSUBSCRIBE.
    static func requests(_ command: String, _ topics: [Topic]) -> [[[UInt8]]] {
        Kind.allCases.compactMap { kind in
            let names = topics.lazy.filter { $0.kind == kind }.map(\.name)
            return names.isEmpty ? nil : wordList(kind.rawValue + command) + names
        }
    }
}

/// The entries whose changes are observed. Changes that affect all entries, such as purges, are always included.
package enum WatchedKeys {
    case key([UInt8])
    case prefix([UInt8])

    func topics(_ channels: ChangeChannels) -> [Topic] {
        switch self {
        case .key(let key): [.channel(channels.all), .channel(channels.of(key))]
        case .prefix(let prefix): [.channel(channels.all), .pattern(channels.pattern(prefix: prefix))]
        }
    }
}

/// Manages the listeners of a client, keeps the daemon's subscriptions in sync with them, and delivers messages.
///
/// Requests are passed to the link with `lock` held, so that the daemon receives SUBSCRIBE and UNSUBSCRIBE in the order
/// of the calls here. Every SUBSCRIBE is followed by an ECHO, whose reply marks the end of the confirmations or errors.
///
/// Thread-safe. `@unchecked Sendable`: mutable properties are guarded by `lock`.
final class SubscriptionHub: LinkEvents, @unchecked Sendable {
    private let settings: LinkSettings
    private let lock = Lock()
    private var link: Link?
    private var listeners: [Topic: [any TopicListener]] = [:]
    /// Whether a connection with subscriptions was lost and has not been replaced.
    private var wasLost = false
    private var fences = 0
    /// The number of running calls of ``add(_:_:)``, which need the link.
    private var callers = 0
    private var isClosed = false
    private let gate: ConnectionGate

    init(_ socketPath: String, _ options: ClientOptions, _ gate: ConnectionGate) {
        self.gate = gate
        var settings = LinkSettings(socketPath, options, database: nil)
        settings.staysConnected = true
        self.settings = settings
    }

    // MARK: For callers

    /// Starts to deliver messages of the topics to `buffer`; returns after the daemon has confirmed the subscriptions.
    func add(_ buffer: any TopicListener, _ topics: [Topic]) async throws(LarderClientError) {
        lock.withLock { callers += 1 }
        defer {
            lock.withLock { callers -= 1 }
            closeIfUnused()
        }
        try await checkServer()
        let begun: (link: Link, exchange: Exchange)? = lock.withLock {
            guard !isClosed else { return nil }
            let link = self.link ?? makeLink()
            for topic in topics where listeners[topic]?.contains(where: { $0 === buffer }) != true {
                listeners[topic, default: []].append(buffer)
            }
            // Subscribe also to topics that already have listeners, because the call must wait for the daemon's reply
            // in any case.
            let exchange = request("SUBSCRIBE", topics)
            link.submit(exchange)
            return (link, exchange)
        }
        guard let begun else { throw closedError }
        let replies = try await begun.link.outcome(of: begun.exchange)
        if let text = replies.lazy.compactMap(\.errorMessage).first { throw .server(text, operation: "SUBSCRIBE") }
    }

    private var closedError: LarderClientError {
        LarderClientError(
            .closed, "the client was closed", operation: "SUBSCRIBE", socketPath: settings.socketPath)
    }

    /// Throws if the server does not support RESP3: in RESP2 the end of the replies to SUBSCRIBE cannot be determined.
    /// Costs nothing after the first connection.
    private func checkServer() async throws(LarderClientError) {
        let link: Link? = lock.withLock { isClosed ? nil : self.link ?? makeLink() }
        guard let link else { throw closedError }
        if link.knownServer == nil { try await link.connected() }
        guard link.knownServer?.speaksRESP3 == false else { return }
        throw LarderClientError(
            .invalidArgument, "subscriptions need a server with RESP3", operation: "SUBSCRIBE",
            socketPath: settings.socketPath)
    }

    /// Closes the link if there are no listeners, and no call needs it.
    private func closeIfUnused() {
        let unused: Link? = lock.withLock {
            defer { if isUnused { link = nil } }
            return isUnused ? link : nil
        }
        unused?.close()
    }

    /// Stops delivering to `buffer`.
    func remove(_ buffer: any TopicListener) {
        let isEmpty = lock.withLock {
            var left: [Topic] = []
            for (topic, buffers) in listeners where buffers.contains(where: { $0 === buffer }) {
                let rest = buffers.filter { $0 !== buffer }
                listeners[topic] = rest.isEmpty ? nil : rest
                if rest.isEmpty { left.append(topic) }
            }
            if !left.isEmpty, !isUnused { link?.submit(request("UNSUBSCRIBE", left)) }
            if listeners.isEmpty { wasLost = false }
            return listeners.isEmpty
        }
        closeIfUnused()
        if isEmpty { gate.open() }
    }

    func close() {
        let (link, buffers) = lock.withLock {
            isClosed = true
            defer {
                self.link = nil
                listeners = [:]
            }
            return (self.link, everyListener)
        }
        link?.close()
        gate.open()
        for buffer in buffers { buffer.finish(nil) }
    }

    // MARK: Called with `lock` held

    private var isUnused: Bool { callers == 0 && listeners.isEmpty }

    /// All listeners. A listener of several topics is included once.
    private var everyListener: [any TopicListener] {
        var seen: Set<ObjectIdentifier> = []
        return listeners.values.joined().filter { seen.insert(ObjectIdentifier($0)).inserted }
    }

    private func makeLink() -> Link {
        let link = Link(settings)
        link.attach(self)
        self.link = link
        return link
    }

    /// Creates the exchange for a command on topics, with an ECHO at its end.
    /// - Parameter command: SUBSCRIBE or UNSUBSCRIBE.
    private func request(_ command: String, _ topics: [Topic]) -> Exchange {
        fences += 1
        let fence = Array("larder-fence-\(fences)".utf8)
        let bytes = RequestEncoder.encoded(Topic.requests(command, topics) + [wordList("ECHO") + [fence]])
        return Exchange(bytes: bytes, replyCount: nil, fence: fence, name: Array(command.utf8), isRead: true)
    }

    // MARK: On the loop's thread

    func linkIsReady(_ link: Link) {
        let begun: (Exchange, [any TopicListener])? = lock.withLock {
            guard wasLost, self.link === link, !listeners.isEmpty else { return nil }
            wasLost = false
            let exchange = request("SUBSCRIBE", Array(listeners.keys))
            link.submit(exchange)
            return (exchange, everyListener)
        }
        guard let (exchange, buffers) = begun else { return }
        Task { [weak self, gate] in
            // If this fails, the connection was lost again. The next connection then subscribes, and the client's calls
            // wait for that.
            guard let replies = try? await link.outcome(of: exchange) else { return }
            gate.open()
            guard let text = replies.lazy.compactMap(\.errorMessage).first else {
                for buffer in buffers { buffer.isRestored() }
                return
            }
            for buffer in buffers {
                self?.remove(buffer)
                buffer.finish(.server(text, operation: "SUBSCRIBE"))
            }
        }
    }

    func linkWasLost(_ link: Link) {
        let buffers = lock.withLock {
            guard self.link === link else { return [any TopicListener]() }
            wasLost = true
            return everyListener
        }
        if !buffers.isEmpty { gate.close(for: link) }
        for buffer in buffers { buffer.connectionWasLost() }
    }

    func link(_ link: Link, pushed message: [RESPValue]) {
        guard let message = TopicMessage(message) else { return }
        for listener in lock.withLock({ listeners[message.topic] ?? [] }) { listener.take(message) }
    }
}
