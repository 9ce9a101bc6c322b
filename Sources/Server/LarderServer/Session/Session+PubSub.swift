import LarderCommandCatalog
import LarderRESP

/// Subscriptions of a session.
extension Session {
    var subscriber: Subscriber { Subscriber(id: id, queue: pushes) }

    /// RESP2 clients cannot distinguish messages from replies, so a connection with subscriptions may run only a few
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
        // Mutate in place: changing a copy and writing it back would copy all names each time.
        if subscription.names == nil { subscription.names = Subscriptions() }
        if subscription.names?.insert(name, kind) == true { server.pubsub.add(subscriber, to: name, kind) }
        noteMode()
        // Check the rights again: they may have changed after the command was checked, when this connection had no
        // subscriptions yet.
        renewRights()
    }

    /// - Parameter isInTransaction: whether a transaction has started a reply, which a message must not interrupt.
    func unsubscribe(_ name: [UInt8], _ kind: PubSub.Kind, isInTransaction: Bool) {
        if subscription.names?.remove(name, kind) == true {
            server.pubsub.remove(subscriber, from: name, kind)
            // First deliver the messages that were published before this command.
            if isOnLoop, !isInTransaction { pushes.deliverAll() }
        }
        if subscription.names?.isEmpty == true { subscription.names = nil }
        noteMode()
    }

    /// Call it after a mode of the connection that affects common commands has changed.
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

    /// Publishes a command's message. In a transaction, messages are published after the transaction was applied,
    /// because its commands may have to run again.
    /// - Returns: the number of copies sent.
    func publish(_ publication: Publication, isInTransaction: Bool) -> Int {
        if isInTransaction {
            subscription.published.append(publication)
            return server.pubsub.count(publication)
        }
        let count = server.pubsub.publish(publication, from: isOnLoop ? pushes : nil)
        // As in Redis, a message from a connection to itself precedes the command's reply. If that reply is discarded,
        // the message is sent with the others.
        if subscription.names != nil, isOnLoop, modes.replyMode == .on { pushes.deliverAll() }
        return count
    }

    /// Publishes the messages of the commands of a transaction.
    func sendPublished() {
        let all = subscription.published
        subscription.published = []
        for publication in all { _ = server.pubsub.publish(publication, from: isOnLoop ? pushes : nil) }
    }

    /// Call it after a deferred command's reply is complete.
    func sendPushesBehindReply() {
        guard !subscription.behindReply.isEmpty else { return }
        let messages = subscription.behindReply
        subscription.behindReply = []
        for message in messages { push(message) }
    }

    /// Sends a message to the client after its replies.
    func push(_ message: PushMessage) {
        // To a MONITOR client, the lines are replies: CLIENT REPLY OFF suppresses them.
        if message.isLine, modes.replyMode != .on { return }
        // Wait until EXEC has replied: nothing may interrupt its reply, which may wait for another thread.
        if let execution = transactions.execution, execution.isBegun { return execution.pushes.append(message) }
        // As in Redis, a message that FLUSHALL or a similar command sends to its own connection follows the reply.
        if message.isOfEverything, isWaiting,
            accounting.pending?.row.flags.isSuperset(of: [.write, .wholeDatabase]) ?? false
        {
            return subscription.behindReply.append(message)
        }
        message.write(to: &replyMemory.pointee, isSubscriber: subscription.names != nil)
    }
}
