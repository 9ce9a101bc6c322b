import CommandCatalog
import RESP

/// What one connection listens to. A value; its session owns it.
struct Subscriptions {
    private(set) var names: [PubSub.Kind: Set<[UInt8]>] = [:]
    /// What the names take, for the limit.
    private(set) var byteCount = 0

    static func byteCount(_ name: Int) -> Int { name + Limits.subscriptionOverheadBytes }

    func contains(_ name: [UInt8], _ kind: PubSub.Kind) -> Bool { names[kind]?.contains(name) ?? false }

    /// - Returns: whether it is new.
    mutating func insert(_ name: [UInt8], _ kind: PubSub.Kind) -> Bool {
        guard names[kind, default: []].insert(name).inserted else { return false }
        byteCount += Self.byteCount(name.count)
        return true
    }

    /// - Returns: whether it was there.
    mutating func remove(_ name: [UInt8], _ kind: PubSub.Kind) -> Bool {
        guard names[kind]?.remove(name) != nil else { return false }
        byteCount -= Self.byteCount(name.count)
        return true
    }

    func all(_ kind: PubSub.Kind) -> [[UInt8]] { names[kind].map(Array.init) ?? [] }

    func count(_ kind: PubSub.Kind) -> Int { names[kind]?.count ?? 0 }

    /// As Redis counts them in its replies: channels and patterns together, sharded channels by themselves.
    func shownCount(_ kind: PubSub.Kind) -> Int {
        kind == .shardChannel ? count(kind) : count(.channel) + count(.pattern)
    }

    var isEmpty: Bool { names.values.allSatisfy(\.isEmpty) }
}

/// A session that listens to channels.
extension Session {
    var subscriber: Subscriber { Subscriber(id: id, queue: pushes) }

    /// In RESP2 nothing tells messages from replies, so that a connection with subscriptions takes few commands.
    var isInSubscriberMode: Bool { subscriptions != nil && replies.version == .two }

    /// Refuses a command that subscriber mode does not allow.
    func checkSubscriberMode(_ spec: CommandSpec) throws(CommandError) {
        guard isInSubscriberMode, !spec.flags.contains(.inSubscriberMode) else { return }
        throw CommandError(
            "ERR Can't execute '\(spec.name)': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in "
                + "this context")
    }

    func subscribe(_ name: [UInt8], _ kind: PubSub.Kind) {
        // In place: a copy that is changed and put back would copy all names for each of them.
        if subscriptions == nil { subscriptions = Subscriptions() }
        if subscriptions?.insert(name, kind) == true { server.pubsub.add(subscriber, to: name, kind) }
        noteMode()
    }

    /// - Parameter isInTransaction: whether a transaction has begun a reply that nothing may come into.
    func unsubscribe(_ name: [UInt8], _ kind: PubSub.Kind, isInTransaction: Bool) {
        if subscriptions?.remove(name, kind) == true {
            server.pubsub.remove(subscriber, from: name, kind)
            // What was published before is delivered first.
            if isOnLoop, !isInTransaction { pushes.deliverAll() }
        }
        if subscriptions?.isEmpty == true { subscriptions = nil }
        noteMode()
    }

    /// To be called when something changed by which common commands mean something else.
    func noteMode() {
        parserMemory.pointee.isOfStranger = !isAuthenticated
        let tracks = tracking.map { !$0.isBroadcast } ?? false
        takesShortWays =
            subscriptions == nil && transaction == nil && isAuthenticated && replyMode == .on && !tracks
        record.redirect.store(tracking.map { Int($0.redirect) } ?? -1, ordering: .relaxed)
        record.isBroadcast.store(tracking?.isBroadcast ?? false, ordering: .relaxed)
        record.channels.store(subscriptions?.count(.channel) ?? 0, ordering: .relaxed)
        record.patterns.store(subscriptions?.count(.pattern) ?? 0, ordering: .relaxed)
        record.shardChannels.store(subscriptions?.count(.shardChannel) ?? 0, ordering: .relaxed)
    }

    /// Listens to nothing any more.
    func endSubscriptions() {
        guard let own = subscriptions else { return }
        for kind in PubSub.Kind.allCases {
            for name in own.all(kind) { server.pubsub.remove(subscriber, from: name, kind) }
        }
        subscriptions = nil
        noteMode()
    }

    /// Publishes what a command says. In a transaction, once it is applied: until then its commands may have to run again.
    /// - Returns: how many copies are sent.
    func publish(_ publication: Publication, isInTransaction: Bool) -> Int {
        if isInTransaction {
            published.append(publication)
            return server.pubsub.count(publication)
        }
        let count = server.pubsub.publish(publication, from: isOnLoop ? pushes : nil)
        // What a connection sends to itself stands before the reply, as in Redis. Where the reply is taken back, it comes
        // with the other messages.
        if subscriptions != nil, isOnLoop, replyMode == .on { pushes.deliverAll() }
        return count
    }

    /// Publishes what the commands of a transaction said.
    func sendPublished() {
        let all = published
        published = []
        for publication in all { _ = server.pubsub.publish(publication, from: isOnLoop ? pushes : nil) }
    }

    /// To be called once a deferred command has its reply.
    func sendPushesBehindReply() {
        guard !pushesBehindReply.isEmpty else { return }
        let messages = pushesBehindReply
        pushesBehindReply = []
        for message in messages { push(message) }
    }

    /// Takes a message for the client, behind the replies that are there.
    func push(_ message: PushMessage) {
        // What MONITOR shows is a reply to it.
        if message.isLine, replyMode != .on { return }
        // Nothing comes into the middle of the reply of EXEC, which may wait for another thread.
        if let execution, execution.isBegun { return execution.pushes.append(message) }
        // What FLUSHALL and its like tell their own connection stands behind their reply, as in Redis.
        if message.isOfEverything, isWaiting,
            pendingNote?.spec.flags.isSuperset(of: [.write, .wholeDatabase]) ?? false
        {
            return pushesBehindReply.append(message)
        }
        message.write(to: &replyMemory.pointee, isSubscriber: subscriptions != nil)
    }
}
