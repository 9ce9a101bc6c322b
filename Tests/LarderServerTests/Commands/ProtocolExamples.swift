/// Requests and replies of Redis' commands; docs/Protocol.md shows examples of Larder's own commands. The text after `>
/// ` is a request; the lines after it are its RESP2 reply. The tests send all requests, each group to its own server
/// with `--policy never`.
enum ProtocolExamples {
    /// The group of the commands for values that are not strings.
    static let otherTypes = "other types"

    /// The examples by group of commands.
    static let groups: [String: String] = [
        otherTypes: #"""
        > HGET user:1 name
        $-1
        > HGETALL user:1
        *0
        > SSCAN members 0
        *2
        $1
        0
        *0
        > LPOP queue
        $-1
        > SET fruit apple
        +OK
        > ZSCORE fruit apple
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > SADD members bob
        -ERR unknown command 'SADD', with args beginning with: 'members' 'bob' (there are no sets: Larder stores strings only)
        """#,
        "json": #"""
        > JSON.SET d $ '{"a":1,"b":[1,2],"s":"x"}'
        +OK
        > JSON.GET d
        $25
        {"a":1,"b":[1,2],"s":"x"}
        > JSON.GET d $..a
        $3
        [1]
        > JSON.GET d .a .s
        $17
        {".a":1,".s":"x"}
        > JSON.SET d $.c {} NX
        +OK
        > JSON.SET d $.c 1 NX
        $-1
        > JSON.MSET e . '{"a":5}' d $.n 2
        +OK
        > JSON.MGET d none e $.a
        *3
        $3
        [1]
        $-1
        $3
        [5]
        > JSON.MERGE e $ '{"a":null,"z":{"y":1}}'
        +OK
        > JSON.GET e
        $13
        {"z":{"y":1}}
        > JSON.TYPE d $.*
        *5
        $7
        integer
        $5
        array
        $6
        string
        $6
        object
        $7
        integer
        > JSON.NUMINCRBY d $.a 4
        $3
        [5]
        > JSON.NUMMULTBY d .a 0.5
        $3
        2.5
        > JSON.NUMINCRBY d .s 1
        -ERR Path does not exist or does not contains a number
        > JSON.TOGGLE d .s
        -ERR Path does not exist or not a bool
        > JSON.STRAPPEND d .s '"yz"'
        :3
        > JSON.STRLEN d $.*
        *5
        $-1
        $-1
        :3
        $-1
        $-1
        > JSON.ARRAPPEND d .b 3 [4]
        :4
        > JSON.ARRLEN d .b
        :4
        > JSON.ARRINDEX d .b 3
        :2
        > JSON.ARRINSERT d $.b 0 0
        *1
        :5
        > JSON.ARRPOP d .b
        $3
        [4]
        > JSON.ARRTRIM d .b 1 2
        :2
        > JSON.OBJKEYS d
        *5
        $1
        a
        $1
        b
        $1
        s
        $1
        c
        $1
        n
        > JSON.OBJLEN d .
        :5
        > JSON.RESP d .b
        *3
        +[
        :1
        :2
        > JSON.CLEAR d $.b
        :1
        > JSON.DEL d $.c
        :1
        > JSON.FORGET d .n
        :1
        > GET d
        $26
        {"a":2.5,"b":[],"s":"xyz"}
        > EDIT d INCR a 1.5 PUSH b 7 RETURN b
        $3
        [7]
        > EDIT d SET s hello
        -ERR step 1: 'hello' is not JSON; a text needs double quotes
        > EDIT d SET $.s 1
        -ERR invalid path '$.s': expected at most 512 names and indices, such as a.b.0, or $; JSON.SET and its like take JSONPath
        > JSON.GET d .a .a
        $10
        {".a":4.0}
        > JSON.MSET d .x.y 1
        +OK
        > EDIT d INCR s 1
        -ERR step 1: s is a string and not a number
        > EDIT none DEL a
        -ERR could not perform this operation on a key that doesn't exist
        > JSON.NUMINCRBY none $.a 1
        -ERR could not perform this operation on a key that doesn't exist
        > SET plain x
        +OK
        > JSON.GET plain
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > SET book:1 '{"author":"Bo","year":1999}'
        +OK
        > SET book:2 '{"author":"Al","year":2001}'
        +OK
        > QUERY KEYS WHERE year > 2000 AND author = Al
        *2
        $-1
        *1
        $6
        book:2
        > QUERY GROUP author COUNT WHERE @key PREFIX book:
        *2
        *2
        $4
        "Al"
        :1
        *2
        $4
        "Bo"
        :1
        > EXPLAIN COUNT
        -ERR EXPLAIN explains a query: EXPLAIN QUERY [argument ...]
        > INDEX
        *0
        > INDEX CREATE byYear ON year
        +OK
        > INDEX DROP byYear
        +OK
        > INDEX DROP byYear
        -ERR there is no index 'byYear'; INDEX lists the indexes
        > QUERY COUNT WHERE year => 2000
        -ERR an operator expected, not '=>' after 'year'; did you mean >=?
        > QUERY LIVE KEYS
        -ERR QUERY LIVE needs RESP3: send HELLO 3 first
        > QUERY STOP 1
        -ERR the connection has no live query 1
        """#,
        "string": #"""
        > SET fruit apple
        +OK
        > GET fruit
        $5
        apple
        > SET fruit pear NX
        $-1
        > SET fruit pear XX GET
        $5
        apple
        > SET fruit plum IFEQ pear
        +OK
        > GETSET fruit fig
        $4
        plum
        > GETDEL fruit
        $3
        fig
        > GETEX fruit
        $-1
        > SETNX fruit apple
        :1
        > SETEX session 60 open
        +OK
        > TTL session
        :60
        > PSETEX session 60000 open
        +OK
        > MSET a 1 b 2
        +OK
        > MGET a b missing
        *3
        $1
        1
        $1
        2
        $-1
        > MSETNX b 3 c 4
        :0
        > APPEND fruit s
        :6
        > STRLEN fruit
        :6
        > GETRANGE fruit 0 2
        $3
        app
        > SUBSTR fruit -2 -1
        $2
        es
        > SETRANGE fruit 5 !
        :6
        > INCR a
        :2
        > DECR a
        :1
        > INCRBY a 41
        :42
        > DECRBY a 2
        :40
        > INCRBYFLOAT a 0.5
        $4
        40.5
        > INCREX hits UBOUND 2 EX 60 ENX
        *2
        :1
        :1
        > MSET left ohmytext right mynewtext
        +OK
        > LCS left right
        $6
        mytext
        > LCS left right LEN
        :6
        > DIGEST fruit
        $16
        5dc1bcf29d04e4d0
        > DELEX fruit IFEQ pear
        :0
        > DELEX fruit IFEQ apple!
        :1
        > MSETEX 2 x 1 y 2 EX 60
        :1
        """#,
        "bitmap": #"""
        > SETBIT flags 7 1
        :0
        > GETBIT flags 7
        :1
        > SET text foobar
        +OK
        > BITCOUNT text
        :26
        > BITCOUNT text 0 0
        :4
        > BITPOS text 1
        :1
        > BITOP NOT inverse flags
        :1
        > BITFIELD counters SET u8 0 200 INCRBY u8 0 100 GET u8 0
        *3
        :0
        :44
        :44
        > BITFIELD_RO counters GET u8 0
        *1
        :44
        """#,
        "generic": #"""
        > MSET a 1 b 2 c 3
        +OK
        > EXISTS a b missing
        :2
        > TYPE a
        +string
        > TOUCH a b
        :2
        > EXPIRE a 100
        :1
        > TTL a
        :100
        > PTTL a
        :100000
        > EXPIRE a 50 GT
        :0
        > PEXPIRE a 90000 LT
        :1
        > EXPIREAT a 33177117420
        :1
        > EXPIRETIME a
        :33177117420
        > PEXPIREAT a 33177117420000
        :1
        > PEXPIRETIME a
        :33177117420000
        > PERSIST a
        :1
        > TTL a
        :-1
        > RENAME a d
        +OK
        > RENAMENX d b
        :0
        > COPY b e
        :1
        > MOVE e 1
        :1
        > KEYS b*
        *1
        $1
        b
        > SCAN 0 MATCH b* COUNT 100
        *2
        $1
        0
        *1
        $1
        b
        > OBJECT ENCODING b
        $3
        int
        > OBJECT REFCOUNT b
        :2147483647
        > DEL b c
        :2
        > UNLINK d missing
        :1
        > RANDOMKEY
        $-1
        > WAIT 0 100
        :0
        """#,
        "scripting": #"""
        > SET lock token
        +OK
        > EVAL "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) end return 0" 1 lock other
        :0
        > EVAL "return {KEYS[1], ARGV[1], 3.9, false}" 1 lock x
        *4
        $4
        lock
        $1
        x
        :3
        $-1
        > SCRIPT LOAD "return redis.call('get',KEYS[1])"
        $40
        fd758d1589d044dd850a6f05d52f2eefd27f033f
        > EVALSHA fd758d1589d044dd850a6f05d52f2eefd27f033f 1 lock
        $5
        token
        > EVALSHA_RO fd758d1589d044dd850a6f05d52f2eefd27f033f 1 lock
        $5
        token
        > EVAL_RO "return redis.call('del',KEYS[1])" 1 lock
        -ERR Write commands are not allowed from read-only scripts. script: dd818e8f932b442a1fa2b44d767baa93d8031d7a, on @user_script:1.
        > SCRIPT EXISTS fd758d1589d044dd850a6f05d52f2eefd27f033f
        *1
        :1
        > SCRIPT FLUSH
        +OK
        > EVALSHA fd758d1589d044dd850a6f05d52f2eefd27f033f 1 lock
        -NOSCRIPT No matching script. Please use EVAL.
        > FUNCTION LOAD "#!lua name=locks\nredis.register_function{function_name='holder', callback=function(keys) return redis.call('get',keys[1]) end, flags={'no-writes'}}"
        $5
        locks
        > FCALL holder 1 lock
        $5
        token
        > FCALL_RO holder 1 lock
        $5
        token
        > FUNCTION DELETE locks
        +OK
        """#,
        "transactions": #"""
        > SET stock 3
        +OK
        > WATCH stock
        +OK
        > MULTI
        +OK
        > DECR stock
        +QUEUED
        > GET stock
        +QUEUED
        > EXEC
        *2
        :2
        $1
        2
        > MULTI
        +OK
        > DISCARD
        +OK
        > UNWATCH
        +OK
        """#,
        "pubsub": #"""
        > PUBLISH news hello
        :0
        > PUBSUB CHANNELS
        *0
        > PUBSUB NUMSUB news
        *2
        $4
        news
        :0
        > PUBSUB NUMPAT
        :0
        > SPUBLISH shard hello
        :0
        > SSUBSCRIBE shard
        *3
        $10
        ssubscribe
        $5
        shard
        :1
        > SUNSUBSCRIBE shard
        *3
        $12
        sunsubscribe
        $5
        shard
        :0
        > SUBSCRIBE news
        *3
        $9
        subscribe
        $4
        news
        :1
        > PSUBSCRIBE n*
        *3
        $10
        psubscribe
        $2
        n*
        :2
        > PUNSUBSCRIBE n*
        *3
        $12
        punsubscribe
        $2
        n*
        :1
        > UNSUBSCRIBE news
        *3
        $11
        unsubscribe
        $4
        news
        :0
        """#,
        "connection": #"""
        > PING
        +PONG
        > PING hello
        $5
        hello
        > ECHO hello
        $5
        hello
        > SELECT 1
        +OK
        > SELECT books
        +OK
        > SELECT 0
        +OK
        > CLIENT SETNAME worker
        +OK
        > CLIENT GETNAME
        $6
        worker
        > CLIENT CAPA redirect
        +OK
        > READONLY
        +OK
        > READWRITE
        +OK
        > CLIENT TRACKING ON
        +OK
        > CLIENT TRACKING OFF
        +OK
        > AUTH secret
        -ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?
        > RESET
        +RESET
        > QUIT
        +OK
        """#,
        "server": #"""
        > SET a 1
        +OK
        > DBSIZE
        :1
        > ACL WHOAMI
        $7
        default
        > CONFIG GET maxmemory-policy
        *2
        $16
        maxmemory-policy
        $10
        noeviction
        > CONFIG SET slowlog-log-slower-than 5000000
        +OK
        > SAVE
        +OK
        > SLOWLOG LEN
        :0
        > COMMAND GETKEYS MSET a 1 b 2
        *2
        $1
        a
        $1
        b
        > SWAPDB 0 1
        +OK
        > DBSIZE
        :0
        > FLUSHDB
        +OK
        > FLUSHALL
        +OK
        > ROLE
        *3
        $6
        master
        :0
        *0
        > BGSAVE
        +Background saving started
        > BGREWRITEAOF
        +Background append only file rewriting started
        """#,
    ]

    /// Commands without an example: their replies vary or are not text, or they stop something.
    static let without: Set<String> = [
        "backup", "changes", "check", "databases", "debug", "dump", "fetch", "hello", "info", "lastsave", "latency",
        "limit", "origin",
        "memory",
        "meta",
        "monitor",
        "release", "restore",
        "shutdown", "time",
    ]
}
