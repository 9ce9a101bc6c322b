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

    package static let subscribe = CommandMetadata(
        "subscribe", arity: -2, [.loading, .stale, .noScript, .pubsub, .onLoop, .inSubscriberMode], group: .pubsub,
        since: "2.0.0", complexity: "O(N)", syntax: "channel [channel ...]", summary: "Subscribes to channels.",
        reply: "for each name a push (an array in RESP2): `subscribe`, the name, how many subscriptions there "
            + "are now", effect: .streams)

    package static let unsubscribe = CommandMetadata(
        "unsubscribe", arity: -1, [.loading, .stale, .noScript, .pubsub, .onLoop, .inSubscriberMode], group: .pubsub,
        since: "2.0.0", complexity: "O(N)", syntax: "[channel [channel ...]]",
        summary: "Ends subscriptions to channels; without arguments, to all.",
        reply: "for each name a push (an array in RESP2): `unsubscribe`, the name, how many subscriptions there "
            + "are now", effect: .streams)

    package static let psubscribe = CommandMetadata(
        "psubscribe", arity: -2, [.loading, .stale, .noScript, .pubsub, .onLoop, .inSubscriberMode], group: .pubsub,
        since: "2.0.0", complexity: "O(N)", syntax: "pattern [pattern ...]",
        summary: "Subscribes to all channels that match the patterns.",
        reply: "for each name a push (an array in RESP2): `psubscribe`, the name, how many subscriptions there "
            + "are now", effect: .streams)

    package static let punsubscribe = CommandMetadata(
        "punsubscribe", arity: -1, [.loading, .stale, .noScript, .pubsub, .onLoop, .inSubscriberMode], group: .pubsub,
        since: "2.0.0", complexity: "O(N)", syntax: "[pattern [pattern ...]]",
        summary: "Ends subscriptions to patterns; without arguments, to all.",
        reply: "for each name a push (an array in RESP2): `punsubscribe`, the name, how many subscriptions "
            + "there are now", effect: .streams)

    package static let ssubscribe = CommandMetadata(
        "ssubscribe", arity: -2, [.loading, .stale, .noScript, .pubsub, .onLoop, .inSubscriberMode], group: .pubsub,
        since: "7.0.0", complexity: "O(N)", syntax: "shardchannel [shardchannel ...]",
        summary: "Subscribes to sharded channels, whose names are separate from those of channels.",
        reply: "for each name a push (an array in RESP2): `ssubscribe`, the name, how many subscriptions there "
            + "are now", access: ["not_key"], channels: .all, effect: .streams)

    package static let sunsubscribe = CommandMetadata(
        "sunsubscribe", arity: -1, [.loading, .stale, .noScript, .pubsub, .onLoop, .inSubscriberMode], group: .pubsub,
        since: "7.0.0", complexity: "O(N)", syntax: "[shardchannel [shardchannel ...]]",
        summary: "Ends subscriptions to sharded channels; without arguments, to all.",
        reply: "for each name a push (an array in RESP2): `sunsubscribe`, the name, how many subscriptions "
            + "there are now", access: ["not_key"], channels: .all, effect: .streams)

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

    package static let pubsubChannels = CommandMetadata(
        "pubsub|channels", arity: -2, [.loading, .stale, .pubsub], group: .pubsub, since: "2.8.0",
        complexity: "O(N) with N the channels or names", syntax: "[pattern]",
        summary: "Lists the channels with subscribers, optionally only those that match a pattern.",
        reply: "array of bulk")

    package static let pubsubNumsub = CommandMetadata(
        "pubsub|numsub", arity: -2, [.loading, .stale, .pubsub], group: .pubsub, since: "2.8.0",
        complexity: "O(N) with N the channels or names", syntax: "[channel ...]",
        summary: "Returns the number of subscribers of each channel.", reply: "alternating channels and numbers")

    package static let pubsubNumpat = CommandMetadata(
        "pubsub|numpat", arity: 2, [.loading, .stale, .pubsub], group: .pubsub, since: "2.8.0",
        complexity: "O(N) with N the channels or names", summary: "Returns the number of different patterns.",
        reply: "integer")

    package static let pubsubShardchannels = CommandMetadata(
        "pubsub|shardchannels", arity: -2, [.loading, .stale, .pubsub], group: .pubsub, since: "7.0.0",
        complexity: "O(N) with N the channels or names", syntax: "[pattern]",
        summary: "Lists the sharded channels with subscribers, optionally only those that match a pattern.",
        reply: "array of bulk")

    package static let pubsubShardnumsub = CommandMetadata(
        "pubsub|shardnumsub", arity: -2, [.loading, .stale, .pubsub], group: .pubsub, since: "7.0.0",
        complexity: "O(N) with N the channels or names", syntax: "[shardchannel ...]",
        summary: "Returns the number of subscribers of each sharded channel.", reply: "alternating channels and numbers"
    )

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

    package static let clientID = CommandMetadata(
        "client|id", arity: 2, [.loading, .stale, .noScript, .preservesClientCaching], group: .connection,
        since: "5.0.0", complexity: "O(1), or O(N) with N the connections", summary: "Returns the connection's ID.",
        reply: "integer")

    package static let clientGetname = CommandMetadata(
        "client|getname", arity: 2, [.loading, .stale, .noScript, .preservesClientCaching], group: .connection,
        since: "2.6.9", complexity: "O(1), or O(N) with N the connections", summary: "Returns the connection's name.",
        reply: "bulk; null when there is none")

    package static let clientSetname = CommandMetadata(
        "client|setname", arity: 3, [.loading, .stale, .noScript, .preservesClientCaching], group: .connection,
        since: "2.6.9",
        complexity: "O(1), or O(N) with N the connections", syntax: "name", summary: "Sets the connection's name.",
        reply: "OK", effect: .names)

    package static let clientSetinfo = CommandMetadata(
        "client|setinfo", arity: 4, [.loading, .stale, .noScript, .preservesClientCaching], group: .connection,
        since: "7.2.0", complexity: "O(1), or O(N) with N the connections", syntax: "LIB-NAME|LIB-VER value",
        summary: "Sets the name or version of the client's library.", reply: "OK", effect: .names)

    package static let clientCapa = CommandMetadata(
        "client|capa", arity: -3, [.loading, .stale, .noScript, .preservesClientCaching], group: .connection,
        since: "0.1.0", complexity: "O(N) with N the words", syntax: "capability [capability ...]",
        summary: "With ATTRIBUTES, QUERY sends warnings in RESP3. Ignores other words.", reply: "OK")

    package static let clientInfo = CommandMetadata(
        "client|info", arity: 2, [.loading, .stale, .noScript, .preservesClientCaching], group: .connection,
        since: "6.2.0",
        complexity: "O(1), or O(N) with N the connections", summary: "Describes this connection in one line.",
        reply: "text", tips: [.output], textForm: .fields)

    package static let clientList = CommandMetadata(
        "client|list", arity: -2, [.admin, .loading, .stale, .noScript, .preservesClientCaching], group: .connection,
        since: "2.4.0", complexity: "O(1), or O(N) with N the connections",
        syntax: "[TYPE NORMAL|MASTER|REPLICA|PUBSUB] [ID id [id ...]]",
        summary: "Describes each connection in one line.", reply: "text", tips: [.output], textForm: .linesOfFields)

    package static let clientKill = CommandMetadata(
        "client|kill", arity: -3, [.admin, .loading, .stale, .noScript, .preservesClientCaching], group: .connection,
        since: "2.4.0", complexity: "O(1), or O(N) with N the connections",
        syntax: "address | [ID id] [TYPE type] [ADDR address] [LADDR address] [USER name] [SKIPME YES|NO] ...",
        summary: "Closes connections.", reply: "OK, or the number of closed connections")

    package static let clientReply = CommandMetadata(
        "client|reply", arity: 3, [.loading, .stale, .noScript, .preservesClientCaching], group: .connection,
        since: "3.2.0", complexity: "O(1), or O(N) with N the connections", syntax: "ON|OFF|SKIP",
        summary: "Turns the replies to this connection on or off.", reply: "OK; nothing with OFF and SKIP",
        effect: .silences)

    package static let clientPause = CommandMetadata(
        "client|pause", arity: -3, [.admin, .loading, .stale, .noScript, .preservesClientCaching], group: .connection,
        since: "2.9.50", complexity: "O(1), or O(N) with N the connections", syntax: "milliseconds [WRITE|ALL]",
        summary: "Delays all commands, or only writes, for some time.", reply: "OK")

    package static let clientUnpause = CommandMetadata(
        "client|unpause", arity: 2, [.admin, .loading, .stale, .noScript, .preservesClientCaching], group: .connection,
        since: "6.2.0", complexity: "O(1), or O(N) with N the connections", summary: "Ends CLIENT PAUSE.", reply: "OK")

    package static let clientNoEvict = CommandMetadata(
        "client|no-evict", arity: 3, [.admin, .loading, .stale, .noScript, .preservesClientCaching], group: .connection,
        since: "7.0.0", complexity: "O(1), or O(N) with N the connections", syntax: "ON|OFF",
        summary: "Exempts the connection from the limit `--max-output`.", reply: "OK", effect: .changesState)

    package static let clientNoTouch = CommandMetadata(
        "client|no-touch", arity: 3, [.loading, .stale, .noScript, .preservesClientCaching], group: .connection,
        since: "7.2.0", complexity: "O(1), or O(N) with N the connections", syntax: "ON|OFF",
        summary: "Accepted without effect: reads always affect which entries stay in memory.", reply: "OK",
        effect: .changesState)

    package static let clientNoLog = CommandMetadata(
        "client|no-log", arity: 3, [.admin, .loading, .stale, .noScript, .preservesClientCaching], group: .connection,
        since: "0.1.0", complexity: "O(1), or O(N) with N the connections", syntax: "ON|OFF",
        summary:
            "Keeps the connection's commands out of `SLOWLOG`, `LATENCY` and `MONITOR`: for tools that poll the daemon.",
        reply: "OK", effect: .changesState)

    package static let clientUnblock = CommandMetadata(
        "client|unblock", arity: -3, [.admin, .loading, .stale, .noScript, .preservesClientCaching], group: .connection,
        since: "5.0.0", complexity: "O(1), or O(N) with N the connections", syntax: "id [TIMEOUT|ERROR]",
        summary: "Returns 0: no command blocks a connection.", reply: "integer 0")

    package static let clientTracking = CommandMetadata(
        "client|tracking", arity: -3, [.loading, .stale, .noScript, .preservesClientCaching], group: .connection,
        since: "6.0.0", complexity: "O(1), or O(N) with N the connections",
        syntax: "ON|OFF [REDIRECT id] [PREFIX prefix [PREFIX prefix ...]] [BCAST] [OPTIN] [OPTOUT] [NOLOOP] [DATABASE]",
        summary:
            "Enables or disables notifications about changes of the keys that the connection has read. With BCAST, "
            + "they are about all keys with one of the prefixes; DATABASE limits these keys to the selected database.",
        reply: "OK", effect: .changesState)

    package static let clientCaching = CommandMetadata(
        "client|caching", arity: 3, [.loading, .stale, .noScript, .preservesClientCaching], group: .connection,
        since: "6.0.0", complexity: "O(1), or O(N) with N the connections", syntax: "YES|NO",
        summary: "Sets whether the keys read by the next command are tracked.", reply: "OK", effect: .changesState)

    package static let clientGetredir = CommandMetadata(
        "client|getredir", arity: 2, [.loading, .stale, .noScript, .preservesClientCaching], group: .connection,
        since: "6.0.0", complexity: "O(1), or O(N) with N the connections",
        summary: "Returns the ID of the client that receives this client's invalidations.",
        reply: "integer: the ID, 0 for none, -1 without tracking")

    package static let clientTrackinginfo = CommandMetadata(
        "client|trackinginfo", arity: 2, [.loading, .stale, .noScript, .preservesClientCaching], group: .connection,
        since: "6.2.0", complexity: "O(1), or O(N) with N the connections",
        summary: "Describes the connection's tracking.", reply: "map")
}
