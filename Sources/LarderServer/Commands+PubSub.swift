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
            "pubsub", arity: -2, [.pubsub, .loading, .stale], group: "pubsub", since: "2.8.0",
            complexity: "O(N) with N the channels, or those named",
            syntax: "CHANNELS [pattern] | NUMSUB [channel ...] | NUMPAT | SHARDCHANNELS [pattern] | "
                + "SHARDNUMSUB [shardchannel ...] | HELP",
            summary: "Tells which channels have subscribers, and how many.",
            reply: "CHANNELS, SHARDCHANNELS: array of bulk; NUMSUB, SHARDNUMSUB: channels and numbers in turn; "
                + "NUMPAT: integer, the different patterns",
            run: PubSubCommands.pubsub),
    ]

    private static func subscription(
        _ name: String, _ kind: PubSub.Kind, arity: Int, since: String, _ syntax: String, _ summary: String
    ) -> CommandSpec {
        let isEnd = name.hasSuffix("unsubscribe")
        return CommandSpec(
            name, arity: arity, [.pubsub, .noScript, .loading, .stale, .onLoop], group: "pubsub", since: since,
            complexity: "O(N)", syntax: syntax, summary: summary,
            reply: "for each name a push (an array in RESP2): `\(name)`, the name, how many subscriptions there are now"
        ) { call throws(CommandError) in
            isEnd ? PubSubCommands.unsubscribe(&call, name, kind) : PubSubCommands.subscribe(&call, name, kind)
        }
    }
}

enum PubSubCommands {
    static func subscribe(_ call: inout Call, _ name: String, _ kind: PubSub.Kind) -> Outcome {
        for index in 1..<call.count {
            let channel = call.array(index)
            call.session.subscribe(channel, kind)
            confirm(call.session, name, channel, kind)
        }
        return .done
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

    @Sendable static func pubsub(_ call: inout Call) throws(CommandError) -> Outcome {
        let session = call.session
        let pubsub = call.server.pubsub
        if call.isWord(1, "CHANNELS") || call.isWord(1, "SHARDCHANNELS") {
            guard call.count <= 3 else {
                throw CommandError(
                    "ERR unknown subcommand or wrong number of arguments for '", shown(call.bytes(1), 128),
                    "'. Try PUBSUB HELP.")
            }
            let kind = call.isWord(1, "CHANNELS") ? PubSub.Kind.channel : .shardChannel
            let names = pubsub.names(kind, matching: call.count == 3 ? GlobPattern(call.array(2)) : nil)
            session.replies.array(count: names.count)
            for name in names { session.replies.bulk(name) }
        } else if call.isWord(1, "NUMSUB") || call.isWord(1, "SHARDNUMSUB") {
            let isSharded = call.isWord(1, "SHARDNUMSUB")
            session.replies.array(count: 2 * (call.count - 2))
            for index in 2..<max(2, call.count) {
                session.replies.bulk(call.bytes(index))
                session.replies.integer(pubsub.count(call.array(index), isSharded: isSharded))
            }
        } else if call.isWord(1, "NUMPAT") {
            guard call.count == 2 else { throw .arity("pubsub|numpat") }
            session.replies.integer(pubsub.patternCount)
        } else if call.isWord(1, "HELP") {
            call.help("PUBSUB")
        } else {
            throw .unknownSubcommand(call, "PUBSUB")
        }
        return .done
    }
}
