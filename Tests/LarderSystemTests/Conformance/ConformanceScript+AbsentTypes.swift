extension ConformanceScript {
    /// Calls that read or remove values that are not strings: first of a missing key, then of a key with a string.
    static let absentTypes =
        absentTypeCalls.replacing("<key>", with: "absent") + "SET string v\n"
        + absentTypeCalls.replacing("<key>", with: "string") + "GET string\nEXISTS absent\n"

    private static let absentTypeCalls = #"""
        HGET <key> f
        HMGET <key> f g
        HGETALL <key>
        HKEYS <key>
        HVALS <key>
        HLEN <key>
        HEXISTS <key> f
        HSTRLEN <key> f
        HSCAN <key> 0
        HRANDFIELD <key>
        HDEL <key> f g
        SMEMBERS <key>
        SISMEMBER <key> m
        SMISMEMBER <key> m n
        SCARD <key>
        SSCAN <key> 0 MATCH a* COUNT 5
        SRANDMEMBER <key>
        SINTER <key> <key>
        SUNION <key> <key>
        SDIFF <key> <key>
        SREM <key> m n
        SPOP <key>
        ZRANGE <key> 0 -1
        ZRANGEBYSCORE <key> -inf (5 WITHSCORES
        ZRANGEBYLEX <key> - +
        ZREVRANGE <key> 0 -1 WITHSCORES
        ZREVRANGEBYSCORE <key> +inf 1
        ZREVRANGEBYLEX <key> + -
        ZSCORE <key> m
        ZMSCORE <key> m n
        ZCARD <key>
        ZCOUNT <key> -inf +inf
        ZLEXCOUNT <key> [a (b
        ZSCAN <key> 0
        ZRANK <key> m
        ZREVRANK <key> m
        ZRANDMEMBER <key>
        ZREM <key> m n
        ZPOPMIN <key>
        ZPOPMAX <key> 2
        ZREMRANGEBYRANK <key> 0 -1
        ZREMRANGEBYSCORE <key> 0 1
        ZREMRANGEBYLEX <key> - +
        LRANGE <key> 0 -1
        LLEN <key>
        LINDEX <key> 0
        LPOS <key> e
        LREM <key> 0 e
        LTRIM <key> 0 5
        LPOP <key>
        RPOP <key>
        XLEN <key>
        XRANGE <key> - +
        XREVRANGE <key> + - COUNT 2
        XDEL <key> 1-1
        XTRIM <key> MAXLEN 5
        XACK <key> g 1-1
        GEODIST <key> m n
        GEOHASH <key> m n
        GEOPOS <key> m n
        GEOSEARCH <key> FROMLONLAT 1 2 BYRADIUS 1 km
        GEORADIUS_RO <key> 1 2 3 km
        GEORADIUSBYMEMBER_RO <key> m 3 km
        SINTERCARD 1 <key>
        ZINTER 1 <key>
        ZINTERCARD 1 <key> LIMIT 1
        ZUNION 1 <key> WEIGHTS 1
        ZDIFF 1 <key> WITHSCORES
        ZMPOP 1 <key> MIN
        LMPOP 1 <key> LEFT COUNT 2
        HRANDFIELD <key> 2
        HRANDFIELD <key> -2 WITHVALUES
        HRANDFIELD <key> x
        HSCAN <key> x
        HSCAN <key> 5 COUNT 0
        SRANDMEMBER <key> 2
        SRANDMEMBER <key> x
        SPOP <key> 2
        SPOP <key> 0
        SPOP <key> -1
        SPOP <key> x
        ZSCAN <key> 18446744073709551615
        ZRANDMEMBER <key> 2 WITHSCORES
        ZPOPMIN <key> 2
        ZPOPMAX <key> -1
        ZREVRANGE <key> x 1
        ZRANGE <key> a b
        ZRANGE <key> a b BYSCORE
        ZRANGE <key> (1 inf BYSCORE
        ZRANGE <key> a b BYLEX
        ZCOUNT <key> - +
        ZCOUNT <key> nan 1
        ZRANGEBYSCORE <key> ( 1
        ZRANGEBYSCORE <key> x 1
        ZREVRANGEBYSCORE <key> 1 [2
        ZLEXCOUNT <key> 0 -1
        ZRANGEBYLEX <key> [ (b
        ZREVRANGEBYLEX <key> ++ -
        ZREMRANGEBYSCORE <key> 1 y
        ZREMRANGEBYLEX <key> a b
        ZREMRANGEBYRANK <key> 0 x
        LRANGE <key> x 1
        LRANGE <key> 0 x
        LPOS <key> e RANK 1
        LPOS <key> e COUNT 0
        LPOS <key> e MAXLEN 1 COUNT 2
        LREM <key> x e
        LTRIM <key> 0 x
        LPOP <key> 2
        RPOP <key> 0
        LPOP <key> -1
        LPOP <key> x
        SINTER <key> absent
        SUNION absent <key>
        SINTERCARD 2 absent <key>
        SINTERCARD 0 <key>
        SINTERCARD x <key>
        ZUNION 2 absent <key>
        ZUNION 2 <key>
        ZMPOP 2 absent <key> MAX COUNT 5
        LMPOP 2 absent <key> RIGHT
        GEOHASH <key>
        GEOPOS <key>
        HGET <key>
        HGET <key> f g
        HMGET <key>
        SMISMEMBER <key>
        LTRIM <key> 0
        EVAL "return redis.call('smembers', KEYS[1])" 1 <key>
        EVAL "return redis.call('zscore', KEYS[1], 'm')" 1 <key>
        EVAL "return redis.call('hgetall', KEYS[1])" 1 <key>
        EVAL "redis.setresp(3); return redis.call('hgetall', KEYS[1])" 1 <key>
        EVAL_RO "return redis.call('lrange', KEYS[1], 0, -1)" 1 <key>
        EVAL_RO "return redis.call('ltrim', KEYS[1], 0, -1)" 1 <key>
        MULTI
        HGETALL <key>
        SPOP <key> 2
        ZREMRANGEBYSCORE <key> 0 1
        LRANGE <key>
        LRANGE <key> 0 x
        EXEC
        MULTI
        HGETALL <key>
        SPOP <key> 2
        ZREMRANGEBYSCORE <key> 0 1
        LRANGE <key> 0 x
        EXEC
        """#
        + "\n"
}
