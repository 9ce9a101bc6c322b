/// Redis commands that Larder does not have, because their values are not strings. The error for such a command names
/// the type. Commands that only read or remove values are not in this list: see ``AbsentTypeCommands``.
enum UnsupportedTypes {
    /// Returns the type of values that a command uses.
    /// - Returns: nil for a command that is not in this list.
    static func subject(of name: String) -> String? { subjects[name.lowercased()] }

    private static let subjects: [String: String] = {
        let names = [
            "lists": """
            blmove blmpop blpop brpop brpoplpush linsert lmove lpush lpushx lset rpoplpush rpush rpushx
            """,
            "hashes": """
            hincrby hincrbyfloat hmset hset hsetnx hexpire hpexpire hexpireat hpexpireat httl hpttl hpersist hgetdel \
            hgetex hsetex
            """,
            "sets": "sadd sdiffstore sinterstore smove sunionstore",
            "sorted sets": """
            bzmpop bzpopmax bzpopmin zadd zdiffstore zincrby zinterstore zrangestore zunionstore
            """,
            "streams": "xadd xautoclaim xclaim xgroup xinfo xpending xread xreadgroup xsetid",
            "places": "geoadd georadius georadiusbymember geosearchstore",
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
