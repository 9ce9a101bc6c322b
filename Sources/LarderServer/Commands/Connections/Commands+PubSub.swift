import LarderEngine
import RESP

extension CommandTable {
    static let pubsubCommands: [CommandSpec] = [
        subscription(
            "subscribe", .channel, arity: -2, since: "2.0.0", "channel [channel ...]", "Listens to channels."),
        subscription(
            "unsubscribe", .channel, arity: -1, since: "2.0.0", "[channel [channel ...]]",
            "Stops listening to channels, to all without arguments."),
        subscription(
            "psubscribe", .pattern, arity: -2, since: "2.0.0", "pattern [pattern ...]",
            "Listens to all channels that match patterns."),
        subscription(
            "punsubscribe", .pattern, arity: -1, since: "2.0.0", "[pattern [pattern ...]]",
            "Stops listening to patterns, to all without arguments."),
        subscription(
            "ssubscribe", .shardChannel, arity: -2, since: "7.0.0", "shardchannel [shardchannel ...]",
            "Listens to sharded channels, which are names of their own."),
        subscription(
            "sunsubscribe", .shardChannel, arity: -1, since: "7.0.0", "[shardchannel [shardchannel ...]]",
            "Stops listening to sharded channels, to all without arguments."),
        CommandSpec(
            "publish", arity: 3, [.pubsub, .loading, .stale, .fast, .onLoop], group: "pubsub", since: "2.0.0",
            complexity: "O(L+P) with L the event loops that have subscribers and P the patterns of all clients",
            syntax: "channel message", summary: "Sends a message to all who listen to the channel.",
            reply: "integer: how many copies are sent", run: PubSubCommands.publish),
        CommandSpec(
            "spublish", arity: 3, [.pubsub, .loading, .stale, .fast, .onLoop], group: "pubsub", since: "7.0.0",
            complexity: "O(L) with L the event loops that have subscribers", syntax: "shardchannel message",
            summary: "Sends a message to all who listen to the sharded channel.",
            reply: "integer: how many copies are sent", run: PubSubCommands.spublish),
        CommandSpec(
            "pubsub", arity: -2, [], group: "pubsub", since: "2.8.0",
            complexity: "O(N) with N the channels, or those named",
            syntax: "CHANNELS [pattern] | NUMSUB [channel ...] | NUMPAT | SHARDCHANNELS [pattern] | "
                + "SHARDNUMSUB [shardchannel ...] | HELP",
            summary: "Tells which channels have subscribers, and how many.",
            reply: "CHANNELS, SHARDCHANNELS: array of bulk; NUMSUB, SHARDNUMSUB: channels and numbers in turn; "
                + "NUMPAT: integer, the different patterns",
            subcommands: [
                row(
                    "channels", "[pattern]", "The channels with subscribers, those that match.", "array of bulk",
                    PubSubCommands.channels),
                row(
                    "numsub", "[channel ...]", "How many connections listen to channels.",
                    "channels and numbers in turn", PubSubCommands.numsub),
                row(
                    "numpat", arity: 2, "", "How many different patterns there are.", "integer", PubSubCommands.numpat),
                row(
                    "shardchannels", since: "7.0.0", "[pattern]", "As CHANNELS, of sharded channels.", "array of bulk",
                    PubSubCommands.shardchannels),
                row(
                    "shardnumsub", since: "7.0.0", "[shardchannel ...]", "As NUMSUB, of sharded channels.",
                    "channels and numbers in turn", PubSubCommands.shardnumsub),
                .help("pubsub", since: "6.2.0"),
            ]),
    ]

    private static func row(
        _ name: String, arity: Int = -2, since: String = "2.8.0", _ syntax: String, _ summary: String, _ reply: String,
        _ run: @escaping CommandSpec.Handler
    ) -> CommandSpec {
        CommandSpec(
            "pubsub|\(name)", arity: arity, [.pubsub, .loading, .stale], group: "pubsub", since: since,
            complexity: "O(N) with N the channels, or those named", syntax: syntax, summary: summary, reply: reply,
            run: run)
    }

    private static func subscription(
        _ name: String, _ kind: PubSub.Kind, arity: Int, since: String, _ syntax: String, _ summary: String
    ) -> CommandSpec {
        let isEnd = name.hasSuffix("unsubscribe")
        return CommandSpec(
            name, arity: arity, [.pubsub, .noScript, .loading, .stale, .onLoop], group: "pubsub", since: since,
            complexity: "O(N)", syntax: syntax, summary: summary,
            reply: "for each name a push (an array in RESP2): `\(name)`, the name, how many subscriptions there are now"
        ) { call throws(CommandError) in
            isEnd ? PubSubCommands.unsubscribe(&call, name, kind) : try PubSubCommands.subscribe(&call, name, kind)
        }
    }
}

enum PubSubCommands {
    static func subscribe(
        _ call: inout Call, _ name: String, _ kind: PubSub.Kind
    ) throws(CommandError) -> Outcome {
        // As in Redis, which takes the other two all the same: many clients subscribe so.
        if kind == .shardChannel, call.isInTransaction {
            throw CommandError("ERR SSUBSCRIBE isn't allowed for a DENY BLOCKING client")
        }
        var bytes = call.session.subscriptions?.byteCount ?? 0
        for index in 1..<call.count { bytes += Subscriptions.byteCount(call.bytes(index).count) }
        try checkSubscriptions(bytes, call.server.limits)
        for index in 1..<call.count {
            let channel = call.array(index)
            call.session.subscribe(channel, kind)
            confirm(call.session, name, channel, kind)
        }
        call.session.keepsReply = !call.isInTransaction
        return .done
    }

    /// Refuses to remember more names for a connection than it may have.
    static func checkSubscriptions(_ bytes: Int, _ limits: Limits) throws(CommandError) {
        guard bytes > limits.subscriptionBytesMax else { return }
        throw CommandError(
            "ERR what one connection listens to may take \(limits.subscriptionBytesMax) bytes (--max-subscriptions)")
    }

    static func unsubscribe(_ call: inout Call, _ name: String, _ kind: PubSub.Kind) -> Outcome {
        let session = call.session
        let channels =
            call.count > 1 ? (1..<call.count).map { call.array($0) } : session.subscriptions?.all(kind) ?? []
        if channels.isEmpty { confirm(session, name, nil, kind) }
        for channel in channels {
            session.unsubscribe(channel, kind, isInTransaction: call.isInTransaction)
            confirm(session, name, channel, kind)
        }
        session.keepsReply = !call.isInTransaction
        return .done
    }

    private static func confirm(_ session: Session, _ name: String, _ channel: [UInt8]?, _ kind: PubSub.Kind) {
        session.replies.push(count: 3)
        session.replies.bulk(name)
        if let channel { session.replies.bulk(channel) } else { session.replies.null() }
        session.replies.integer(session.subscriptions?.shownCount(kind) ?? 0)
    }

    @Sendable static func publish(_ call: inout Call) throws(CommandError) -> Outcome { publish(call, .channel) }

    @Sendable static func spublish(_ call: inout Call) throws(CommandError) -> Outcome { publish(call, .shardChannel) }

    private static func publish(_ call: Call, _ kind: PubSub.Kind) -> Outcome {
        let publication = Publication(kind: kind, channel: call.array(1), payload: call.array(2))
        let count = call.session.publish(publication, isInTransaction: call.isInTransaction)
        call.session.replies.integer(count)
        return .done
    }

    @Sendable static func channels(_ call: inout Call) throws(CommandError) -> Outcome { try names(call, .channel) }

    @Sendable static func shardchannels(_ call: inout Call) throws(CommandError) -> Outcome {
        try names(call, .shardChannel)
    }

    private static func names(_ call: Call, _ kind: PubSub.Kind) throws(CommandError) -> Outcome {
        guard call.count <= 3 else {
            throw CommandError(
                "ERR unknown subcommand or wrong number of arguments for '", shown(call.bytes(1), 128),
                "'. Try PUBSUB HELP.")
        }
        let names = call.server.pubsub.names(kind, matching: call.count == 3 ? GlobPattern(call.array(2)) : nil)
        call.session.replies.array(count: names.count)
        for name in names { call.session.replies.bulk(name) }
        return .done
    }

    @Sendable static func numsub(_ call: inout Call) throws(CommandError) -> Outcome {
        counts(call, isSharded: false)
    }

    @Sendable static func shardnumsub(_ call: inout Call) throws(CommandError) -> Outcome {
        counts(call, isSharded: true)
    }

    private static func counts(_ call: Call, isSharded: Bool) -> Outcome {
        call.session.replies.array(count: 2 * (call.count - 2))
        for index in 2..<max(2, call.count) {
            call.session.replies.bulk(call.bytes(index))
            call.session.replies.integer(call.server.pubsub.count(call.array(index), isSharded: isSharded))
        }
        return .done
    }

    @Sendable static func numpat(_ call: inout Call) throws(CommandError) -> Outcome {
        call.session.replies.integer(call.server.pubsub.patternCount)
        return .done
    }
}
