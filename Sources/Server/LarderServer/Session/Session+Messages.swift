import LarderCommandCatalog
import LarderRESP

/// The subscriptions of a session, and the messages for its client.
extension Session {
    var subscriber: Subscriber { Subscriber(id: id, queue: pushes) }

    /// Whether only few commands are allowed: in RESP2, a client with subscriptions cannot distinguish messages from
    /// replies.
    var isInSubscriberMode: Bool { subscription.names != nil && replies.version == .two }

    /// Refuses a command that subscriber mode does not allow.
    func checkSubscriberMode(_ spec: CommandMetadata) throws(CommandError) {
        guard isInSubscriberMode, !spec.flags.contains(.inSubscriberMode) else { return }
        throw CommandError(
            "ERR Can't execute '\(spec.name)': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in "
                + "this context")
    }

    func subscribe(_ name: [UInt8], _ kind: PubSub.Kind) {
        // Change the subscriptions in place: changing a copy and storing it would copy all names each time.
        if subscription.names == nil { subscription.names = Subscriptions() }
        if subscription.names?.insert(name, kind) == true { server.pubsub.add(subscriber, to: name, kind) }
        noteMode()
        // Check the rights again: they may have changed after the command was checked, but before the subscription.
        renewRights()
    }

    /// - Parameter isInTransaction: whether the reply of a transaction has begun. No message may interrupt it.
    func unsubscribe(_ name: [UInt8], _ kind: PubSub.Kind, isInTransaction: Bool) {
        if subscription.names?.remove(name, kind) == true {
            server.pubsub.remove(subscriber, from: name, kind)
            // First deliver the messages that were published before this command ran.
            if isOnLoop, !isInTransaction { pushes.deliverAll() }
        }
        if subscription.names?.isEmpty == true { subscription.names = nil }
        noteMode()
    }

    /// Updates the conditions for the fast paths, and the connection's record. Call it after any change of the
    /// connection's modes, subscriptions, transaction or origin.
    func noteMode() {
        parserMemory.pointee.isUnauthenticated = !modes.isAuthenticated
        let tracks = modes.tracking.map { !$0.isBroadcast } ?? false
        let takesGets =
            subscription.names == nil && transactions.queue == nil && modes.isAuthenticated && modes.replyMode == .on
            && !tracks && fastLevel != nil
        takesFastGets = takesGets && !origin.needsCheck
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

    /// Publishes the message of a PUBLISH command. Messages of a transaction are published only after the transaction
    /// was applied, because its commands may have to run several times.
    /// - Returns: the number of clients that receive it.
    func publish(_ publication: Publication, isInTransaction: Bool) -> Int {
        if isInTransaction {
            subscription.published.append(publication)
            return server.pubsub.count(publication)
        }
        let count = server.pubsub.publish(publication, from: isOnLoop ? pushes : nil)
        // As in Redis, a message from a client to itself precedes the command's reply. If CLIENT REPLY discards that
        // reply, deliver the message with the other ones later.
        if subscription.names != nil, isOnLoop, modes.replyMode == .on { pushes.deliverAll() }
        return count
    }

    /// Publishes the messages that the commands of a transaction have collected.
    func sendPublished() {
        let all = subscription.published
        subscription.published = []
        for publication in all { _ = server.pubsub.publish(publication, from: isOnLoop ? pushes : nil) }
    }

    /// Sends the messages that had to wait for the reply of a deferred command. Call it after that reply is complete.
    func sendPushesBehindReply() {
        guard !subscription.behindReply.isEmpty else { return }
        let messages = subscription.behindReply
        subscription.behindReply = []
        for message in messages { push(message) }
    }

    /// Adds a message for the client to the output, after the replies that are already there.
    func push(_ message: PushMessage) {
        // Lines of MONITOR are replies to that command, so CLIENT REPLY OFF suppresses them.
        if message.isLine, modes.replyMode != .on { return }
        // Keep the message until EXEC has replied: nothing may interrupt that reply, which may wait for another thread.
        if let execution = transactions.execution, execution.isBegun { return execution.pushes.append(message) }
        // As in Redis, if FLUSHALL or a similar command invalidates its own client's keys, the message follows its
        // reply.
        if message.isOfEverything, isWaiting,
            accounting.pending?.row.flags.isSuperset(of: [.write, .wholeDatabase]) ?? false
        {
            return subscription.behindReply.append(message)
        }
        message.write(to: &replyMemory.pointee, isSubscriber: subscription.names != nil)
    }
}
