/// Commands about the client's own connection: transactions, subscriptions, and its settings.
extension CommandMetadata {
    static let connections: [CommandMetadata] = [
        .multi, .exec, .discard, .watch, .unwatch, .subscribe, .unsubscribe, .psubscribe, .punsubscribe, .ssubscribe,
        .sunsubscribe, .publish, .spublish, .pubsub, .ping, .echo, .quit, .hello, .select, .auth, .reset, .client,
        .readonly, .readwrite,
    ]

    package static let multi = CommandMetadata(
        "multi", arity: 1, [.fast, .loading, .stale, .inMulti, .noScript, .allowBusy], group: .transactions,
        since: "1.2.0", summary: "Starts a transaction: the following commands are queued until EXEC.", reply: "OK",
        effect: .beginsTransaction)

    package static let exec = CommandMetadata(
        "exec", arity: 1, [.loading, .stale, .inMulti, .noScript, .skipSlowlog, .runsTransaction], group: .transactions,
        since: "1.2.0", complexity: "that of the queued commands",
        summary: "Runs the queued commands as one commit unit, isolated from all other connections.",
        reply: "array of the commands' replies; null when a watched key was changed", effect: .endsTransaction)

    package static let discard = CommandMetadata(
        "discard", arity: 1, [.fast, .loading, .stale, .inMulti, .noScript, .allowBusy], group: .transactions,
        since: "2.0.0", complexity: "O(N) with N the queued commands",
        summary: "Drops the queued commands and the watched keys.", reply: "OK", effect: .endsTransaction)

    package static let watch = CommandMetadata(
        "watch", arity: -2, [.fast, .loading, .stale, .opens, .inMulti, .noScript, .allowBusy], keys: .all,
        group: .transactions, since: "2.2.0", complexity: "O(N)", syntax: "key [key ...]",
        summary: "Makes the next EXEC fail if one of the keys changes before it.", reply: "OK", access: ["RO"],
        effect: .changesState)

    package static let unwatch = CommandMetadata(
        "unwatch", arity: 1, [.fast, .loading, .stale, .noScript, .allowBusy], group: .transactions, since: "2.2.0",
        complexity: "O(N) with N the watched keys", summary: "Stops watching all keys.", reply: "OK",
        effect: .endsTransaction)

    private static let subscriptions = CommandFamily(
        "", flags: [.loading, .stale, .noScript, .pubsub, .onLoop, .inSubscriberMode], group: .pubsub, since: "2.0.0",
        complexity: "O(N)", effect: .streams)

    private static func pushes(_ kind: String) -> String {
        "for each name a push (an array in RESP2): `\(kind)`, the name, how many subscriptions there are now"
    }

    package static let subscribe = subscriptions.row(
        "subscribe", -2, syntax: "channel [channel ...]", "Subscribes to channels.", reply: pushes("subscribe"))
    package static let unsubscribe = subscriptions.row(
        "unsubscribe", -1, syntax: "[channel [channel ...]]",
        "Ends subscriptions to channels; without arguments, to all.", reply: pushes("unsubscribe"))
    package static let psubscribe = subscriptions.row(
        "psubscribe", -2, syntax: "pattern [pattern ...]", "Subscribes to all channels that match the patterns.",
        reply: pushes("psubscribe"))
    package static let punsubscribe = subscriptions.row(
        "punsubscribe", -1, syntax: "[pattern [pattern ...]]",
        "Ends subscriptions to patterns; without arguments, to all.", reply: pushes("punsubscribe"))
    package static let ssubscribe = subscriptions.row(
        "ssubscribe", -2, since: "7.0.0", syntax: "shardchannel [shardchannel ...]",
        "Subscribes to sharded channels, whose names are separate from those of channels.", reply: pushes("ssubscribe"),
        access: ["not_key"], channels: .all)
    package static let sunsubscribe = subscriptions.row(
        "sunsubscribe", -1, since: "7.0.0", syntax: "[shardchannel [shardchannel ...]]",
        "Ends subscriptions to sharded channels; without arguments, to all.", reply: pushes("sunsubscribe"),
        access: ["not_key"], channels: .all)

    package static let publish = CommandMetadata(
        "publish", arity: 3, [.fast, .loading, .stale, .pubsub, .onLoop, .publishes], group: .pubsub, since: "2.0.0",
        complexity: "O(L+P) with L the event loops that have subscribers and P the patterns of all clients",
        syntax: "channel message", summary: "Sends a message to all subscribers of the channel.",
        reply: "integer: the number of copies sent")

    package static let spublish = CommandMetadata(
        "spublish", arity: 3, [.fast, .loading, .stale, .pubsub, .onLoop, .publishes], group: .pubsub, since: "7.0.0",
        complexity: "O(L) with L the event loops that have subscribers", syntax: "shardchannel message",
        summary: "Sends a message to all subscribers of the sharded channel.",
        reply: "integer: the number of copies sent", access: ["not_key"], channels: .one)

    package static let pubsub = CommandMetadata(
        "pubsub", arity: -2, [], group: .pubsub, since: "2.8.0", complexity: "O(N) with N the channels or names",
        syntax: "CHANNELS [pattern] | NUMSUB [channel ...] | NUMPAT | SHARDCHANNELS [pattern] | SHARDNUMSUB "
            + "[shardchannel ...] | HELP", summary: "Shows channels and their numbers of subscribers.",
        reply: "CHANNELS, SHARDCHANNELS: array of bulk; NUMSUB, SHARDNUMSUB: alternating channels and numbers; "
            + "NUMPAT: integer, the different patterns",
        subcommands: [
            .pubsubChannels, .pubsubNumsub, .pubsubNumpat, .pubsubShardchannels, .pubsubShardnumsub,
            .help("pubsub", group: .pubsub, since: "6.2.0"),
        ])

    private static let ofPubsub = CommandFamily(
        "pubsub|", flags: [.loading, .stale, .pubsub], group: .pubsub, complexity: "O(N) with N the channels or names")
    package static let pubsubChannels = ofPubsub.row(
        "channels", -2, since: "2.8.0", syntax: "[pattern]",
        "Lists the channels with subscribers, optionally only those that match a pattern.", reply: "array of bulk")
    package static let pubsubNumsub = ofPubsub.row(
        "numsub", -2, since: "2.8.0", syntax: "[channel ...]", "Returns the number of subscribers of each channel.",
        reply: "alternating channels and numbers")
    package static let pubsubNumpat = ofPubsub.row(
        "numpat", 2, since: "2.8.0", "Returns the number of different patterns.", reply: "integer")
    package static let pubsubShardchannels = ofPubsub.row(
        "shardchannels", -2, since: "7.0.0", syntax: "[pattern]",
        "Lists the sharded channels with subscribers, optionally only those that match a pattern.",
        reply: "array of bulk")
    package static let pubsubShardnumsub = ofPubsub.row(
        "shardnumsub", -2, since: "7.0.0", syntax: "[shardchannel ...]",
        "Returns the number of subscribers of each sharded channel.", reply: "alternating channels and numbers")

    package static let ping = CommandMetadata(
        "ping", arity: -1, [.fast, .inSubscriberMode], group: .connection, since: "1.0.0", syntax: "[message]",
        summary: "Replies; use it to check whether the daemon is running.", reply: "PONG, or the message as bulk",
        tips: [.requestAllShards, .responseAllSucceeded])

    package static let echo = CommandMetadata(
        "echo", arity: 2, [.fast, .loading, .stale], group: .connection, since: "1.0.0", syntax: "message",
        summary: "Returns the message.", reply: "bulk")

    package static let quit = CommandMetadata(
        "quit", arity: -1, [.fast, .loading, .stale, .inMulti, .noScript, .allowBusy, .noAuth, .inSubscriberMode],
        group: .connection, since: "1.0.0", summary: "Closes the connection after all replies are sent.", reply: "OK",
        effect: .closes)

    package static let hello = CommandMetadata(
        "hello", arity: -1, [.fast, .loading, .stale, .noScript, .allowBusy, .noAuth], group: .connection,
        since: "6.0.0", syntax: "[protover [AUTH username password] [SETNAME clientname]]",
        summary: "Switches to RESP2 or RESP3, and describes the server.", reply: "map", secrets: .afterAUTH,
        effect: .introduces)

    package static let select = CommandMetadata(
        "select", arity: 2, [.fast, .loading, .stale], group: .connection, since: "1.0.0", syntax: "name",
        summary: "Selects the connection's database; a connection starts in database 0.", reply: "OK",
        database: .selected)

    package static let auth = CommandMetadata(
        "auth", arity: -2, [.fast, .loading, .stale, .noScript, .allowBusy, .noAuth], group: .connection,
        since: "1.0.0", syntax: "[username] password",
        summary: "Authenticates with larderd's password (--password-file).", reply: "OK",
        secrets: .from(1), effect: .introduces)

    package static let reset = CommandMetadata(
        "reset", arity: 1, [.fast, .loading, .stale, .inMulti, .noScript, .allowBusy, .noAuth, .inSubscriberMode],
        group: .connection, since: "6.2.0", complexity: "O(N) with N the watched keys and subscriptions",
        summary: "Resets the connection to its initial state.", reply: "RESET", effect: .resets)

    package static let readonly = CommandMetadata(
        "readonly", arity: 1, [.fast, .loading, .stale], group: .connection, since: "3.0.0",
        summary: "Accepted without effect: for clients of clusters and replicas.", reply: "OK")

    package static let readwrite = CommandMetadata(
        "readwrite", arity: 1, [.fast, .loading, .stale], group: .connection, since: "3.0.0",
        summary: "Accepted without effect, like READONLY.", reply: "OK")

    package static let client = CommandMetadata(
        "client", arity: -2, [], group: .connection, since: "2.4.0",
        complexity: "O(1); LIST and KILL O(N) with N the connections", syntax: "subcommand [argument ...]",
        summary: "Lists, names and closes connections.", reply: "depends on the subcommand: CLIENT HELP",
        subcommands: [
            .clientID, .clientGetname, .clientSetname, .clientSetinfo, .clientCapa, .clientInfo, .clientList,
            .clientKill, .clientReply, .clientPause, .clientUnpause, .clientNoEvict, .clientNoTouch, .clientNoLog,
            .clientUnblock,
            .clientTracking, .clientCaching, .clientGetredir, .clientTrackinginfo, .help("client", group: .connection),
        ])

    private static let ofClient = CommandFamily(
        "client|", flags: [.loading, .stale, .noScript, .preservesClientCaching], group: .connection,
        complexity: "O(1), or O(N) with N the connections")
    package static let clientID = ofClient.row(
        "id", 2, since: "5.0.0", "Returns the connection's ID.", reply: "integer")
    package static let clientGetname = ofClient.row(
        "getname", 2, since: "2.6.9", "Returns the connection's name.", reply: "bulk; null when there is none")
    package static let clientSetname = ofClient.row(
        "setname", 3, since: "2.6.9", syntax: "name", "Sets the connection's name.", reply: "OK", effect: .names)
    package static let clientSetinfo = ofClient.row(
        "setinfo", 4, since: "7.2.0", syntax: "LIB-NAME|LIB-VER value",
        "Sets the name or version of the client's library.", reply: "OK", effect: .names)
    package static let clientCapa = ofClient.row(
        "capa", -3, since: "0.1.0", complexity: "O(N) with N the words", syntax: "capability [capability ...]",
        "With ATTRIBUTES, QUERY sends warnings in RESP3. Ignores other words.", reply: "OK")
    package static let clientInfo = ofClient.row(
        "info", 2, since: "6.2.0", "Describes this connection in one line.", reply: "text", tips: [.output],
        textForm: .fields)
    package static let clientList = ofClient.row(
        "list", -2, flags: [.admin, .loading, .stale, .noScript, .preservesClientCaching], since: "2.4.0",
        syntax: "[TYPE NORMAL|MASTER|REPLICA|PUBSUB] [ID id [id ...]]", "Describes each connection in one line.",
        reply: "text", tips: [.output], textForm: .linesOfFields)
    package static let clientKill = ofClient.row(
        "kill", -3, flags: [.admin, .loading, .stale, .noScript, .preservesClientCaching], since: "2.4.0",
        syntax: "address | [ID id] [TYPE type] [ADDR address] [LADDR address] [USER name] [SKIPME YES|NO] ...",
        "Closes connections.", reply: "OK, or the number of closed connections")
    package static let clientReply = ofClient.row(
        "reply", 3, since: "3.2.0", syntax: "ON|OFF|SKIP", "Turns the replies to this connection on or off.",
        reply: "OK; nothing with OFF and SKIP", effect: .silences)
    package static let clientPause = ofClient.row(
        "pause", -3, flags: [.admin, .loading, .stale, .noScript, .preservesClientCaching], since: "2.9.50",
        syntax: "milliseconds [WRITE|ALL]", "Delays all commands, or only writes, for some time.", reply: "OK")
    package static let clientUnpause = ofClient.row(
        "unpause", 2, flags: [.admin, .loading, .stale, .noScript, .preservesClientCaching], since: "6.2.0",
        "Ends CLIENT PAUSE.", reply: "OK")
    package static let clientNoEvict = ofClient.row(
        "no-evict", 3, flags: [.admin, .loading, .stale, .noScript, .preservesClientCaching], since: "7.0.0",
        syntax: "ON|OFF", "Exempts the connection from the limit `--max-output`.", reply: "OK", effect: .changesState)
    package static let clientNoTouch = ofClient.row(
        "no-touch", 3, since: "7.2.0", syntax: "ON|OFF",
        "Accepted without effect: reads always affect which entries stay in memory.", reply: "OK",
        effect: .changesState)
    package static let clientNoLog = ofClient.row(
        "no-log", 3, flags: [.admin, .loading, .stale, .noScript, .preservesClientCaching], since: "0.1.0",
        syntax: "ON|OFF",
        "Keeps the connection's commands out of `SLOWLOG`, `LATENCY` and `MONITOR`: for tools that poll the daemon.",
        reply: "OK", effect: .changesState)
    package static let clientUnblock = ofClient.row(
        "unblock", -3, flags: [.admin, .loading, .stale, .noScript, .preservesClientCaching], since: "5.0.0",
        syntax: "id [TIMEOUT|ERROR]", "Returns 0: no command blocks a connection.", reply: "integer 0")
    package static let clientTracking = ofClient.row(
        "tracking", -3, since: "6.0.0",
        syntax: "ON|OFF [REDIRECT id] [PREFIX prefix [PREFIX prefix ...]] [BCAST] [OPTIN] [OPTOUT] [NOLOOP] [DATABASE]",
        "Enables or disables notifications about changes of the keys that the connection has read. With BCAST, they "
            + "are about all keys with one of the prefixes; DATABASE limits these keys to the selected database.",
        reply: "OK", effect: .changesState)
    package static let clientCaching = ofClient.row(
        "caching", 3, since: "6.0.0", syntax: "YES|NO", "Sets whether the keys read by the next command are tracked.",
        reply: "OK", effect: .changesState)
    package static let clientGetredir = ofClient.row(
        "getredir", 2, since: "6.0.0", "Returns the ID of the client that receives this client's invalidations.",
        reply: "integer: the ID, 0 for none, -1 without tracking")
    package static let clientTrackinginfo = ofClient.row(
        "trackinginfo", 2, since: "6.2.0", "Describes the connection's tracking.", reply: "map")
}
