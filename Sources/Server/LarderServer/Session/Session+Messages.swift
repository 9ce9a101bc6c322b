import LarderCommandCatalog
import LarderRESP

/// The messages for a session's client, and the messages that the client publishes.
///
/// While `subscriptions` is being changed, no message may be delivered, because ``push(_:)`` reads `subscriptions`.
extension Session {
    var queries: ConnectionQueries { subscriptions.queries }

    /// Whether only few commands are allowed, because in RESP2 a client with subscriptions cannot distinguish messages
    /// from replies.
    var isInSubscriberMode: Bool { !subscriptions.isEmpty && replies.version == .two }

    func subscribe(_ name: [UInt8], _ kind: PubSub.Kind) {
        if subscriptions.insert(name, kind) { server.pubsub.add(subscriptions.subscriber, to: name, kind) }
        noteSubscriptions()
        // Check the rights again: they may have changed after the command was checked, but before the subscription.
        renewRights()
    }

    /// - Parameter isInTransaction: whether the reply of a transaction has begun. No message may interrupt it.
    func unsubscribe(_ name: [UInt8], _ kind: PubSub.Kind, isInTransaction: Bool) {
        guard subscriptions.remove(name, kind) else { return }
        server.pubsub.remove(subscriptions.subscriber, from: name, kind)
        // First deliver the messages that were published before this command.
        if thread.isOnLoop, !isInTransaction { subscriptions.subscriber.queue.deliverAll() }
        subscriptions.endIfUnused()
        noteSubscriptions()
    }

    func endSubscriptions() {
        guard !subscriptions.isEmpty else { return }
        subscriptions.end(in: server.pubsub)
        noteSubscriptions()
    }

    private func noteSubscriptions() {
        subscriptions.note(in: record)
        noteMode()
    }

    /// Publishes the message of a PUBLISH command. In a transaction, only collects the message until the transaction is
    /// applied, because the transaction's commands may run several times.
    /// - Returns: the number of clients that receive it.
    func publish(_ publication: Publication, isInTransaction: Bool) -> Int {
        if isInTransaction {
            subscriptions.published.append(publication)
            return server.pubsub.count(publication)
        }
        let queue = thread.isOnLoop ? subscriptions.subscriber.queue : nil
        let count = server.pubsub.publish(publication, from: queue)
        // As in Redis, a message from a client to itself precedes the command's reply. If CLIENT REPLY discards that
        // reply, the message is delivered later with other messages.
        if !subscriptions.isEmpty, !modes.isSilent { queue?.deliverAll() }
        return count
    }

    /// Publishes the messages that the commands of a transaction have collected.
    func sendPublished() {
        let all = subscriptions.published
        subscriptions.published = []
        let queue = thread.isOnLoop ? subscriptions.subscriber.queue : nil
        for publication in all { _ = server.pubsub.publish(publication, from: queue) }
    }

    /// Adds a message for the client to the output, after the replies that are already there.
    func push(_ message: PushMessage) {
        // Lines of MONITOR are replies to that command, so CLIENT REPLY OFF suppresses them.
        if message.isLine, modes.isSilent { return }
        if let id = message.query, !queries.takes(message, of: id) { return }
        // Keep the message until EXEC has replied. It must not interrupt that reply, which may be written in several
        // runs of the session.
        if let execution = transactions.execution, execution.isBegun { return execution.pushes.append(message) }
        // As in Redis, if FLUSHALL or a similar command invalidates keys of its own client, the message follows the
        // command's reply.
        if message.isOfEverything, command.waitsForWork,
            accounting.pending?.row.flags.isSuperset(of: [.write, .wholeDatabase]) ?? false
        {
            return subscriptions.behindReply.append(message)
        }
        message.write(to: &replyMemory.pointee, isSubscriber: !subscriptions.isEmpty)
    }

    // MARK: MONITOR

    var isMonitoring: Bool { record.isMonitor.load(ordering: .relaxed) }

    func beginMonitoring() {
        server.monitors.add(subscriptions.subscriber)
        record.isMonitor.store(true, ordering: .relaxed)
        server.noteAttention()
        renewRights()
    }

    func endMonitoring() {
        guard record.isMonitor.exchange(false, ordering: .relaxed) else { return }
        server.monitors.remove(id)
        server.noteAttention()
    }
}
