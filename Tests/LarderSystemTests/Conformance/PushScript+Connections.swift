extension PushScript {
    /// The replies that CLIENT REPLY does not suppress, and the effects of HELLO and MULTI on subscriptions.
    static let replyModes = #"""
        a CLIENT REPLY SKIP | a0
        a SET k 1 | a0
        a GET k
        a CLIENT REPLY SKIP | a0
        a CLIENT REPLY SKIP | a0
        a PING | a0
        a PING
        a CLIENT REPLY SKIP | a0
        a CLIENT REPLY BAD | a0
        a CLIENT REPLY SKIP | a0
        a CLIENT REPLY ON
        a CLIENT REPLY SKIP | a0
        a RESET | a0
        a PING
        a CLIENT REPLY SKIP | a0
        a SUBSCRIBE x y | a2
        a PING
        a UNSUBSCRIBE x
        a UNSUBSCRIBE y
        a CLIENT REPLY OFF | a0
        a GET k | a0
        a NOSUCH | a0
        a SUBSCRIBE x
        b PUBLISH x 1 | a1 b1
        a UNSUBSCRIBE x
        a UNSUBSCRIBE
        a CLIENT REPLY SKIP | a0
        a PING | a0
        a CLIENT REPLY ON
        a GET k
        a CLIENT REPLY OFF | a0
        a RESET
        c HELLO 3
        c SUBSCRIBE x
        c CLIENT REPLY OFF | c0
        c PUBLISH x own | c1
        c CLIENT REPLY ON
        c CLIENT TRACKING ON
        c GET k
        c CLIENT REPLY OFF | c0
        c PUBLISH x own | c1
        b SET k 2 | b1 c1
        # What is written without a reply is committed, and told of, all the same.
        c CLIENT REPLY ON
        c GET k
        c CLIENT REPLY OFF | c0
        c SET k 3 | c1
        c GET k | c0
        c MULTI | c0
        c SET k 4 | c0
        c EXEC | c1
        d HELLO 3
        d CLIENT TRACKING ON
        d GET k
        c INCR k | d1
        d GET k
        c FLUSHALL | c1 d1
        c CLIENT REPLY ON
        d CLIENT TRACKING OFF
        d GET k
        c CLIENT REPLY ON
        c CLIENT REPLY SKIP | c0
        c UNSUBSCRIBE x
        c PING
        a MULTI
        a SSUBSCRIBE s
        a GET k
        a EXEC
        a SPUBLISH s 1
        c MULTI
        c SSUBSCRIBE s
        c SUBSCRIBE s
        c EXEC
        c HELLO 3 SETNAME first BAD
        c CLIENT GETNAME
        c HELLO 3 SETNAME second AUTH nobody x
        c CLIENT GETNAME
        """#

    /// `m` sends MONITOR. The start of its lines, with the time and the socket, is not compared.
    static let monitor = #"""
        # So that nobody is seen to connect.
        a PING
        b PING
        q PING
        m MONITOR
        a GET k | a1 m1
        a SET k v BAD | a1 m1
        a SET k "a b\x00\"\\\xff" | a1 m1
        a INCR k | a1 m1
        a GET
        a NOSUCH a
        a AUTH x | a1 m1
        a AUTH u p | a1 m1
        a HELLO 3 AUTH default x SETNAME me | a1 m1
        a HELLO 2 SETNAME auth AUTH x y | a1 m1
        a SELECT 3 | a1 m1
        a MULTI | a1 m1
        a GET k
        a SET k
        a EXEC | a1 m1
        a EXEC | a1 m1
        a MULTI | a1 m1
        a GET k
        a INCR q
        a EXEC | a1 m3
        a MULTI | a1 m1
        a MONITOR
        a EXEC | a1 m1
        a WATCH k | a1 m1
        a FLUSHDB | a1 m1
        a FLUSHDB BAD | a1 m1
        a RENAME nothing k | a1 m1
        a CONFIG GET maxclients
        a SHUTDOWN BAD
        m GET k
        m SET k 1
        m EXISTS
        m PUBLISH x 1
        m DBSIZE
        m NOSUCH
        m PING | m2
        m SELECT 1 | m2
        m MULTI | m2
        m GET k
        m EXEC | m2
        m MONITOR | m0
        m CLIENT REPLY OFF | m0
        m PING | m0
        m CLIENT REPLY ON | m2
        m SUBSCRIBE x | m2
        a PUBLISH x 1 | a1 m2
        m RESET
        a GET k
        m GET k
        b PING
        m MONITOR
        q PING | q1 m1
        q QUIT | q1 m1
        b PING | b1 m1
        m RESET
        """#

    /// Counts the notifications that report that all keys have changed. `a` tracks its reads, `b` uses BCAST.
    static let flushes = #"""
        a HELLO 3
        a CLIENT TRACKING on
        b HELLO 3
        w FLUSHALL | w1 a1
        w SET k 1
        w SELECT 3
        w SET k 1
        w SELECT 0
        a GET k
        w FLUSHALL | w1 a1
        w FLUSHALL | w1 a1
        w FLUSHDB ASYNC | w1 a1
        w FLUSHDB BAD
        w SELECT 9
        w FLUSHDB | w1 a1
        w SELECT 0
        b CLIENT TRACKING on BCAST
        w FLUSHALL | w1 a1 b1
        b FLUSHALL | a1 b2
        w MULTI
        w FLUSHALL
        w EXEC | w1 a1 b1
        a MGET k l m
        w MULTI
        w SET m 1
        w SELECT 3
        w SET k 1
        w SELECT 0
        w SET l 1
        w EXEC | w1 a3 b1
        a GET k
        w SETBIT k 0 1 | w1 a1 b1
        a GET k
        w SETBIT k 0 1
        w SETBIT k 1 0
        w BITFIELD k SET u4 0 8 GET u4 0
        w GETEX k PERSIST
        w EXPIRE k 1000 | w1 a1 b1
        a GET k
        w GETEX k PERSIST | w1 a1 b1
        """#
}
