/// Commands of Redis for types other than strings. They are unknown here, and the error says why.
enum UnsupportedTypes {
    /// - Returns: the type of value that the command works on.
    static func subject(of name: String) -> String? { subjects[name.lowercased()] }

    private static let subjects: [String: String] = {
        let names = [
            "lists": """
            blmove blmpop blpop brpop brpoplpush lindex linsert llen lmove lmpop lpop lpos lpush lpushx lrange lrem lset \
            ltrim rpop rpoplpush rpush rpushx
            """,
            "hashes": """
            hdel hexists hget hgetall hincrby hincrbyfloat hkeys hlen hmget hmset hrandfield hscan hset hsetnx hstrlen \
            hvals hexpire hpexpire hexpireat hpexpireat httl hpttl hpersist hgetdel hgetex hsetex
            """,
            "sets": """
            sadd scard sdiff sdiffstore sinter sintercard sinterstore sismember smembers smismember smove spop \
            srandmember srem sscan sunion sunionstore
            """,
            "sorted sets": """
            bzmpop bzpopmax bzpopmin zadd zcard zcount zdiff zdiffstore zincrby zinter zintercard zinterstore zlexcount \
            zmpop zmscore zpopmax zpopmin zrandmember zrange zrangebylex zrangebyscore zrangestore zrank zrem \
            zremrangebylex zremrangebyrank zremrangebyscore zrevrange zrevrangebylex zrevrangebyscore zrevrank zscan \
            zscore zunion zunionstore
            """,
            "streams": """
            xack xadd xautoclaim xclaim xdel xgroup xinfo xlen xpending xrange xread xreadgroup xrevrange xsetid xtrim
            """,
            "places": """
            geoadd geodist geohash geopos georadius georadius_ro georadiusbymember georadiusbymember_ro geosearch \
            geosearchstore
            """,
            "counting sketches": "pfadd pfcount pfdebug pfmerge pfselftest",
            "lists and sets": "sort sort_ro",
        ]
        var subjects: [String: String] = [:]
        for (subject, list) in names {
            for name in list.split(separator: " ") { subjects[String(name)] = subject }
        }
        return subjects
    }()
}
