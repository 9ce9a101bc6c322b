/// Commands for types that Larder does not store: hashes, sets, sorted sets, lists, streams and geospatial indexes.
/// They read or remove parts of values. No key has such a value, so each command has a fixed reply: Redis' reply for a
/// missing key.
///
/// Commands that store such values do not exist.
extension CommandMetadata {
    static let absentTypes: [CommandMetadata] = hashes + sets + sortedSets + lists + streams + places

    /// How the command uses its keys in Redis, as flags of Redis' key specifications.
    private enum KeyAccess: String {
        case reads = "RO access"
        case looksAt = "RO"
        case changes = "RW update"
        case removes = "RW delete"
        case pops = "RW access delete"
    }

    private static func row(
        _ name: String, _ arity: Int, _ flags: CommandFlags, _ group: CommandGroup, _ since: String, _ syntax: String,
        _ reply: AbsentReply.Form, checks: AbsentReply.Check = .nothing, keys: KeyPositions = .one,
        use: KeyAccess = .reads, tips: [CommandTip] = [], replacedBy: String? = nil
    ) -> CommandMetadata {
        CommandMetadata(
            name, arity: arity, flags, keys: keys, group: group, since: since,
            complexity: keys.last == 1 ? "O(1)" : "O(N) with N keys", syntax: syntax,
            summary: "Returns Redis' reply for a missing key: no key has a \(group.valueName).",
            reply: "\(reply.text); WRONGTYPE when there is a fresh entry", access: [use.rawValue], tips: tips,
            replacement: replacedBy.map { ("6.2.0", $0) }, absent: AbsentReply(form: reply, check: checks))
    }

    private static let hashes = [
        row("hget", 3, [.readonly, .fast], .hash, "2.0.0", "key field", .null),
        row("hmget", -3, [.readonly, .fast], .hash, "2.0.0", "key field [field ...]", .each(.null, from: 2)),
        row("hgetall", 2, .readonly, .hash, "2.0.0", "key", .emptyMap, tips: [.outputOrder]),
        row("hkeys", 2, .readonly, .hash, "2.0.0", "key", .emptyArray, tips: [.outputOrder]),
        row("hvals", 2, .readonly, .hash, "2.0.0", "key", .emptyArray, tips: [.outputOrder]),
        row("hlen", 2, [.readonly, .fast], .hash, "2.0.0", "key", .zero, use: .looksAt),
        row("hexists", 3, [.readonly, .fast], .hash, "2.0.0", "key field", .zero, use: .looksAt),
        row("hstrlen", 3, [.readonly, .fast], .hash, "3.2.0", "key field", .zero, use: .looksAt),
        row(
            "hscan", -3, .readonly, .hash, "2.8.0", "key cursor [MATCH pattern] [COUNT count]", .emptyScan,
            checks: .cursor, tips: [.output]),
        row(
            "hrandfield", -2, .readonly, .hash, "6.2.0", "key [count [WITHVALUES]]", .counted(.null, .emptyArray),
            checks: .count, tips: [.output]),
        row("hdel", -3, [.write, .fast], .hash, "2.0.0", "key field [field ...]", .zero, use: .removes),
    ]

    private static let sets = [
        row("smembers", 2, .readonly, .set, "1.0.0", "key", .emptySet, tips: [.outputOrder]),
        row("sismember", 3, [.readonly, .fast], .set, "1.0.0", "key member", .zero, use: .looksAt),
        row("smismember", -3, [.readonly, .fast], .set, "6.2.0", "key member [member ...]", .each(.zero, from: 2)),
        row("scard", 2, [.readonly, .fast], .set, "1.0.0", "key", .zero, use: .looksAt),
        row(
            "sscan", -3, .readonly, .set, "2.8.0", "key cursor [MATCH pattern] [COUNT count]", .emptyScan,
            checks: .cursor, tips: [.output]),
        row(
            "srandmember", -2, .readonly, .set, "1.0.0", "key [count]", .counted(.null, .emptyArray), checks: .count,
            tips: [.output]),
        row("sinter", -2, .readonly, .set, "1.0.0", "key [key ...]", .emptySet, keys: .all, tips: [.outputOrder]),
        row(
            "sintercard", -3, .readonly, .set, "7.0.0", "numkeys key [key ...] [LIMIT limit]", .zero,
            keys: .countedFirst),
        row("sunion", -2, .readonly, .set, "1.0.0", "key [key ...]", .emptySet, keys: .all, tips: [.outputOrder]),
        row("sdiff", -2, .readonly, .set, "1.0.0", "key [key ...]", .emptySet, keys: .all, tips: [.outputOrder]),
        row("srem", -3, [.write, .fast], .set, "1.0.0", "key member [member ...]", .zero, use: .removes),
        row(
            "spop", -2, [.write, .fast], .set, "1.0.0", "key [count]", .counted(.null, .emptySet),
            checks: .positiveCount, use: .pops, tips: [.output]),
    ]

    private static let sortedSets = [
        row(
            "zrange", -4, .readonly, .sortedSet, "1.2.0",
            "key start stop [BYSCORE | BYLEX] [REV] [LIMIT offset count] [WITHSCORES]", .emptyArray,
            checks: .ranks),
        row(
            "zrangebyscore", -4, .readonly, .sortedSet, "1.0.5", "key min max [WITHSCORES] [LIMIT offset count]",
            .emptyArray, checks: .scores, replacedBy: "`ZRANGE` with `BYSCORE`"),
        row(
            "zrangebylex", -4, .readonly, .sortedSet, "2.8.9", "key min max [LIMIT offset count]", .emptyArray,
            checks: .members, replacedBy: "`ZRANGE` with `BYLEX`"),
        row(
            "zrevrange", -4, .readonly, .sortedSet, "1.2.0", "key start stop [WITHSCORES]", .emptyArray,
            checks: .integers(2...3), replacedBy: "`ZRANGE` with `REV`"),
        row(
            "zrevrangebyscore", -4, .readonly, .sortedSet, "2.2.0", "key max min [WITHSCORES] [LIMIT offset count]",
            .emptyArray, checks: .scores, replacedBy: "`ZRANGE` with `REV` and `BYSCORE`"),
        row(
            "zrevrangebylex", -4, .readonly, .sortedSet, "2.8.9", "key max min [LIMIT offset count]", .emptyArray,
            checks: .members, replacedBy: "`ZRANGE` with `REV` and `BYLEX`"),
        row("zscore", 3, [.readonly, .fast], .sortedSet, "1.2.0", "key member", .null),
        row("zmscore", -3, [.readonly, .fast], .sortedSet, "6.2.0", "key member [member ...]", .each(.null, from: 2)),
        row("zcard", 2, [.readonly, .fast], .sortedSet, "1.2.0", "key", .zero, use: .looksAt),
        row("zcount", 4, [.readonly, .fast], .sortedSet, "2.0.0", "key min max", .zero, checks: .scores),
        row("zlexcount", 4, [.readonly, .fast], .sortedSet, "2.8.9", "key min max", .zero, checks: .members),
        row(
            "zscan", -3, .readonly, .sortedSet, "2.8.0", "key cursor [MATCH pattern] [COUNT count]", .emptyScan,
            checks: .cursor, tips: [.output]),
        row("zrank", 3, [.readonly, .fast], .sortedSet, "2.0.0", "key member", .null),
        row("zrevrank", 3, [.readonly, .fast], .sortedSet, "2.0.0", "key member", .null),
        row(
            "zrandmember", -2, .readonly, .sortedSet, "6.2.0", "key [count [WITHSCORES]]", .counted(.null, .emptyArray),
            checks: .count, tips: [.output]),
        row(
            "zinter", -3, .readonly, .sortedSet, "6.2.0",
            "numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE SUM | " + "MIN | MAX] [WITHSCORES]",
            .emptyArray, keys: .countedFirst),
        row(
            "zintercard", -3, .readonly, .sortedSet, "7.0.0", "numkeys key [key ...] [LIMIT limit]", .zero,
            keys: .countedFirst),
        row(
            "zunion", -3, .readonly, .sortedSet, "6.2.0",
            "numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE SUM | " + "MIN | MAX] [WITHSCORES]",
            .emptyArray, keys: .countedFirst),
        row(
            "zdiff", -3, .readonly, .sortedSet, "6.2.0", "numkeys key [key ...] [WITHSCORES]", .emptyArray,
            keys: .countedFirst),
        row("zrem", -3, [.write, .fast], .sortedSet, "1.2.0", "key member [member ...]", .zero, use: .removes),
        row(
            "zpopmin", -2, [.write, .fast], .sortedSet, "5.0.0", "key [count]", .emptyArray, checks: .positiveCount,
            use: .pops),
        row(
            "zpopmax", -2, [.write, .fast], .sortedSet, "5.0.0", "key [count]", .emptyArray, checks: .positiveCount,
            use: .pops),
        row(
            "zmpop", -4, .write, .sortedSet, "7.0.0", "numkeys key [key ...] MIN | MAX [COUNT count]", .nullArray,
            keys: .countedFirst, use: .pops),
        row(
            "zremrangebyrank", 4, .write, .sortedSet, "2.0.0", "key start stop", .zero, checks: .integers(2...3),
            use: .removes),
        row("zremrangebyscore", 4, .write, .sortedSet, "1.2.0", "key min max", .zero, checks: .scores, use: .removes),
        row(
            "zremrangebylex", 4, .write, .sortedSet, "2.8.9", "key min max", .zero, checks: .members, use: .removes),
    ]

    private static let lists = [
        row("lrange", 4, .readonly, .list, "1.0.0", "key start stop", .emptyArray, checks: .integers(2...3)),
        row("llen", 2, [.readonly, .fast], .list, "1.0.0", "key", .zero, use: .looksAt),
        row("lindex", 3, .readonly, .list, "1.0.0", "key index", .null),
        row(
            "lpos", -3, .readonly, .list, "6.0.6", "key element [RANK rank] [COUNT count] [MAXLEN length]",
            .withCOUNT(.null, .emptyArray)),
        row("lrem", 4, .write, .list, "1.0.0", "key count element", .zero, checks: .integers(2...2), use: .removes),
        row("ltrim", 4, .write, .list, "1.0.0", "key start stop", .ok, checks: .integers(2...3), use: .removes),
        row(
            "lpop", -2, [.write, .fast], .list, "1.0.0", "key [count]", .counted(.null, .nullArray),
            checks: .positiveCount, use: .pops),
        row(
            "rpop", -2, [.write, .fast], .list, "1.0.0", "key [count]", .counted(.null, .nullArray),
            checks: .positiveCount, use: .pops),
        row(
            "lmpop", -4, .write, .list, "7.0.0", "numkeys key [key ...] LEFT | RIGHT [COUNT count]", .nullArray,
            keys: .countedFirst, use: .pops),
    ]

    private static let streams = [
        row("xlen", 2, [.readonly, .fast], .stream, "5.0.0", "key", .zero, use: .looksAt),
        row("xrange", -4, .readonly, .stream, "5.0.0", "key start end [COUNT count]", .emptyArray),
        row("xrevrange", -4, .readonly, .stream, "5.0.0", "key end start [COUNT count]", .emptyArray),
        row("xdel", -3, [.write, .fast], .stream, "5.0.0", "key id [id ...]", .zero, use: .removes),
        row(
            "xtrim", -4, .write, .stream, "5.0.0", "key MAXLEN | MINID [= | ~] threshold [LIMIT count]", .zero,
            use: .removes, tips: [.output]),
        row("xack", -4, [.write, .fast], .stream, "5.0.0", "key group id [id ...]", .zero, use: .changes),
    ]

    private static let places = [
        row("geodist", -4, .readonly, .geo, "3.2.0", "key member member [M | KM | FT | MI]", .null),
        row("geohash", -2, .readonly, .geo, "3.2.0", "key [member [member ...]]", .each(.null, from: 2)),
        row("geopos", -2, .readonly, .geo, "3.2.0", "key [member [member ...]]", .each(.nullArray, from: 2)),
        row(
            "geosearch", -7, .readonly, .geo, "6.2.0",
            "key FROMMEMBER member | FROMLONLAT longitude latitude BYRADIUS radius "
                + "unit | BYBOX width height unit [ASC | DESC] [COUNT count [ANY]] [WITHCOORD] [WITHDIST] [WITHHASH]",
            .emptyArray),
        row(
            "georadius_ro", -6, .readonly, .geo, "3.2.10",
            "key longitude latitude radius M | KM | FT | MI [option ...]", .emptyArray,
            replacedBy: "`GEOSEARCH` with `FROMLONLAT` and `BYRADIUS`"),
        row(
            "georadiusbymember_ro", -5, .readonly, .geo, "3.2.10", "key member radius M | KM | FT | MI [option ...]",
            .emptyArray, replacedBy: "`GEOSEARCH` with `FROMMEMBER` and `BYRADIUS`"),
    ]
}
