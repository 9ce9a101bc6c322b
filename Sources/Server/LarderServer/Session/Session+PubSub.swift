import LarderCommandCatalog
import LarderRESP

/// A session that listens to channels.
extension Session {
    var subscriber: Subscriber { Subscriber(id: id, queue: pushes) }

    /// In RESP2 a client cannot tell messages from replies, so a connection with subscriptions may run only a few
    /// commands.
    var isInSubscriberMode: Bool { subscription.names != nil && replies.version == .two }

    /// Refuses a command that subscriber mode does not allow.
    func checkSubscriberMode(_ spec: CommandMetadata) throws(CommandError) {
        guard isInSubscriberMode, !spec.flags.contains(.inSubscriberMode) else { return }
        throw CommandError(
            "ERR Can't execute '\(spec.name)': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in "
                + "this context")
    }

    func subscribe(_ name: [UInt8], _ kind: PubSub.Kind) {
        // Changed in place: a changed copy that is put back would copy all names each time.
        if subscription.names == nil { subscription.names = Subscriptions() }
        if subscription.names?.insert(name, kind) == true { server.pubsub.add(subscriber, to: name, kind) }
        noteMode()
        // They may have changed since the command was judged, when this connection did not listen yet.
        renewRights()
    }

    /// - Parameter isInTransaction: whether a transaction has begun a reply, which nothing may interrupt.
    func unsubscribe(_ name: [UInt8], _ kind: PubSub.Kind, isInTransaction: Bool) {
        if subscription.names?.remove(name, kind) == true {
            server.pubsub.remove(subscriber, from: name, kind)
            // Messages that were published before are delivered first.
            if isOnLoop, !isInTransaction { pushes.deliverAll() }
        }
        if subscription.names?.isEmpty == true { subscription.names = nil }
        noteMode()
    }

    /// Call it after a change of a mode of the connection that affects common commands.
    func noteMode() {
        parserMemory.pointee.isUnauthenticated = !modes.isAuthenticated
        let tracks = modes.tracking.map { !$0.isBroadcast } ?? false
        let takesGets =
            subscription.names == nil && transactions.queue == nil && modes.isAuthenticated && modes.replyMode == .on
            && !tracks && fastLevel != nil
        takesFastGets = takesGets && !origin.isLookedAt
        takesOriginGets = takesGets && origin.tier != nil
        takesFastPath = takesFastGets && fastLevel == .write
        record.redirect.store(modes.tracking.map { Int($0.redirect) } ?? -1, ordering: .relaxed)
        record.isBroadcast.store(modes.tracking?.isBroadcast ?? false, ordering: .relaxed)
        record.channels.store(subscription.names?.count(.channel) ?? 0, ordering: .relaxed)
        record.patterns.store(subscription.names?.count(.pattern) ?? 0, ordering: .relaxed)
        record.shardChannels.store(subscription.names?.count(.shardChannel) ?? 0, ordering: .relaxed)
    }

    /// Ends all subscriptions.
    func endSubscriptions() {
        guard let own = subscription.names else { return }
        for kind in PubSub.Kind.allCases {
            for name in own.all(kind) { server.pubsub.remove(subscriber, from: name, kind) }
        }
        subscription.names = nil
        noteMode()
    }

    /// Publishes a command's message. In a transaction, this is done once the transaction is applied, because until
    /// then its commands may have to run again.
    /// - Returns: how many copies are sent.
    func publish(_ publication: Publication, isInTransaction: Bool) -> Int {
        if isInTransaction {
            subscription.published.append(publication)
            return server.pubsub.count(publication)
        }
        let count = server.pubsub.publish(publication, from: isOnLoop ? pushes : nil)
        // A message from a connection to itself stands before the reply, as in Redis. If the reply is discarded, it
        // comes with the other messages.
        if subscription.names != nil, isOnLoop, modes.replyMode == .on { pushes.deliverAll() }
        return count
    }

    /// Publishes the messages of the commands of a transaction.
    func sendPublished() {
        let all = subscription.published
        subscription.published = []
        for publication in all { _ = server.pubsub.publish(publication, from: isOnLoop ? pushes : nil) }
    }

    /// Call it once a deferred command has its reply.
    func sendPushesBehindReply() {
        guard !subscription.behindReply.isEmpty else { return }
        let messages = subscription.behindReply
        subscription.behindReply = []
        for message in messages { push(message) }
    }

    /// Adds a message for the client behind its replies.
    func push(_ message: PushMessage) {
        // To MONITOR's client, the lines are replies.
        if message.isLine, modes.replyMode != .on { return }
        // Nothing may interrupt the reply of EXEC, which may wait for another thread.
        if let execution = transactions.execution, execution.isBegun { return execution.pushes.append(message) }
        // Messages that FLUSHALL and similar commands cause for their own connection follow their reply, as in Redis.
        if message.isOfEverything, isWaiting,
            accounting.pending?.row.flags.isSuperset(of: [.write, .wholeDatabase]) ?? false
        {
            return subscription.behindReply.append(message)
        }
        message.write(to: &replyMemory.pointee, isSubscriber: subscription.names != nil)
    }
}
