/// Commands of several connections, in the format of ``PushStep``. Both servers start empty. `q` is a connection that
/// is closed at the end.
enum PushScript {
    static let pubsub = #"""
        a SUBSCRIBE
        a SUBSCRIBE x y | a2
        a EXEC
        a EXEC x
        a SUBSCRIBE x
        a GET k
        a SET k v
        a MGET k k
        a EXISTS k
        a get a b c
        a NOSUCH
        a CLIENT ID
        a SELECT 1
        a PING
        a PING hi
        a PING a b
        a ECHO hello
        a PUBLISH x 1
        b PUBLISH x 1 | a1 b1
        b PUBLISH y "" | a1 b1
        b PUBLISH z 1
        b PUBLISH "x\x00" "\xff\r\n"
        b PUBLISH
        b PUBLISH x
        b PUBLISH x y z
        b SPUBLISH x 1
        a UNSUBSCRIBE x
        b PUBLISH x 1
        a PSUBSCRIBE p* [ab]? | a2
        b PUBLISH pat 1 | a1 b1
        b PUBLISH ax 1 | a1 b1
        b PUBLISH p 1 | a1 b1
        a SUBSCRIBE pat
        b PUBLISH pat 2 | a2 b1
        a UNSUBSCRIBE pat
        a UNSUBSCRIBE
        a PUNSUBSCRIBE nothing
        a PUNSUBSCRIBE p* [ab]? | a2
        a PUNSUBSCRIBE
        a UNSUBSCRIBE
        a UNSUBSCRIBE q
        a GET k
        a PUBLISH x 1
        a SSUBSCRIBE s t | a2
        a GET k
        b SPUBLISH s v | a1 b1
        b PUBLISH s v
        b PUBSUB SHARDCHANNELS s*
        b PUBSUB SHARDNUMSUB s nothing
        b PUBSUB CHANNELS
        a SUNSUBSCRIBE t
        a SUNSUBSCRIBE
        a SUNSUBSCRIBE
        c HELLO 3
        c SUBSCRIBE x
        c PING
        c PING hi
        c GET k
        c SET k v
        c GET k
        c PUBLISH x self | c2
        c PSUBSCRIBE x*
        c PUBLISH x self | c3
        a SUBSCRIBE x
        b PUBLISH x all | a1 c2 b1
        c PUBLISH x all | a1 c3
        c SSUBSCRIBE s
        c SPUBLISH s self | c2
        c UNSUBSCRIBE nothing
        c UNSUBSCRIBE
        c UNSUBSCRIBE
        c PUNSUBSCRIBE
        c SUNSUBSCRIBE
        b PUBSUB CHANNELS
        b PUBSUB CHANNELS z*
        b PUBSUB CHANNELS a b
        b PUBSUB NUMSUB
        b PUBSUB NUMSUB x nothing x
        b PUBSUB NUMPAT
        b PUBSUB NUMPAT x
        b PUBSUB
        b PUBSUB NOSUCH
        b PUBSUB SHARDCHANNELS
        b PUBSUB SHARDNUMSUB
        c PSUBSCRIBE a* b* | c2
        a UNSUBSCRIBE
        a PSUBSCRIBE a*
        b PUBSUB NUMPAT
        b PUBLISH aa 1 | a1 c1 b1
        d HELLO 3
        d SUBSCRIBE one two | d2
        d HELLO 2
        d GET k
        b PUBLISH one 1 | d1 b1
        d UNSUBSCRIBE two one | d2
        d GET k
        a PUNSUBSCRIBE
        c PUNSUBSCRIBE b* a* | c2
        q SUBSCRIBE x
        q QUIT
        """#
}
