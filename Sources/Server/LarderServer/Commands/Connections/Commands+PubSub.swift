import LarderCommandCatalog
import LarderEngine
import LarderRESP

extension CommandTable {
    static let pubsubCommands: Handlers = [
        .subscribe: { call throws(CommandError) in try subscribe(&call, .channel) },
        .unsubscribe: { call throws(CommandError) in unsubscribe(&call, .channel) },
        .psubscribe: { call throws(CommandError) in try subscribe(&call, .pattern) },
        .punsubscribe: { call throws(CommandError) in unsubscribe(&call, .pattern) },
        .ssubscribe: { call throws(CommandError) in try subscribe(&call, .shardChannel) },
        .sunsubscribe: { call throws(CommandError) in unsubscribe(&call, .shardChannel) },
        .publish: { call in publish(call, .channel) },
        .spublish: { call in publish(call, .shardChannel) },
        .pubsubChannels: { call throws(CommandError) in try names(call, .channel) },
        .pubsubNumsub: { call in counts(call, isSharded: false) },
        .pubsubNumpat: { call in call.reply(call.server.pubsub.patternCount) },
        .pubsubShardchannels: { call throws(CommandError) in try names(call, .shardChannel) },
        .pubsubShardnumsub: { call in counts(call, isSharded: true) },
    ]

    private static func subscribe(_ call: inout Call, _ kind: PubSub.Kind) throws(CommandError) -> Outcome {
        // As in Redis, SSUBSCRIBE is not allowed in a transaction, but SUBSCRIBE and PSUBSCRIBE are allowed.
        if kind == .shardChannel, call.isInTransaction {
            throw CommandError("ERR SSUBSCRIBE isn't allowed for a DENY BLOCKING client")
        }
        var bytes = call.session.subscriptions.byteCount
        for index in 1..<call.count { bytes += Subscriptions.byteCount(call.bytes(index).count) }
        try checkSubscriptions(bytes, call.server.limits)
        for index in 1..<call.count {
            let channel = call.array(index)
            call.session.subscribe(channel, kind)
            confirm(call, channel, kind)
        }
        call.session.replyQueue.keepsReply = !call.isInTransaction
        return .done
    }

    /// Throws if a connection's subscriptions would use more memory than allowed.
    static func checkSubscriptions(_ bytes: Int, _ limits: Limits) throws(CommandError) {
        guard bytes > limits.subscriptionBytesMax else { return }
        throw CommandError(
            "ERR subscriptions of one connection exceed \(limits.subscriptionBytesMax) bytes (--max-subscriptions)")
    }

    private static func unsubscribe(_ call: inout Call, _ kind: PubSub.Kind) -> Outcome {
        let session = call.session
        let channels = call.count > 1 ? (1..<call.count).map { call.array($0) } : session.subscriptions.all(kind)
        if channels.isEmpty { confirm(call, nil, kind) }
        for channel in channels {
            session.unsubscribe(channel, kind, isInTransaction: call.isInTransaction)
            confirm(call, channel, kind)
        }
        session.replyQueue.keepsReply = !call.isInTransaction
        return .done
    }

    private static func confirm(_ call: Call, _ channel: [UInt8]?, _ kind: PubSub.Kind) {
        let session = call.session
        session.replies.push(count: 3)
        session.replies.bulk(call.name)
        session.replies.word(channel)
        session.replies.integer(session.subscriptions.shownCount(kind))
    }

    private static func publish(_ call: Call, _ kind: PubSub.Kind) -> Outcome {
        let publication = Publication(kind: kind, channel: call.array(1), payload: call.array(2))
        return call.reply(call.session.publish(publication, isInTransaction: call.isInTransaction))
    }

    private static func names(_ call: Call, _ kind: PubSub.Kind) throws(CommandError) -> Outcome {
        guard call.count <= 3 else { throw .subcommand(call, of: "PUBSUB") }
        let names = call.server.pubsub.names(kind, matching: call.count == 3 ? GlobPattern(call.array(2)) : nil)
        call.session.replies.words(names)
        return .done
    }

    private static func counts(_ call: Call, isSharded: Bool) -> Outcome {
        call.session.replies.array(count: 2 * (call.count - 2))
        for index in 2..<max(2, call.count) {
            call.session.replies.bulk(call.bytes(index))
            call.session.replies.integer(call.server.pubsub.count(call.array(index), isSharded: isSharded))
        }
        return .done
    }
}
