extension PushScript {
    /// `a` and `b` track keys, `w` writes, and messages are redirected to `r`.
    static let tracking = #"""
        a CLIENT GETREDIR
        a CLIENT TRACKINGINFO
        a CLIENT CACHING yes
        a HELLO 3
        a CLIENT TRACKING
        a CLIENT TRACKING on
        a CLIENT TRACKINGINFO
        a CLIENT GETREDIR
        a CLIENT CACHING yes
        a CLIENT CACHING bad
        a CLIENT CACHING
        a CLIENT CACHING yes x
        a CLIENT GETREDIR x
        a CLIENT TRACKINGINFO x
        a GET k
        a GET k
        w SET k 1 | w1 a1
        w SET k 2
        a GET k
        a MGET k l m
        w MSET k 1 l 2 m 3 | w1 a3
        a GET k
        a SET k 4 | a2
        a GET k
        w DEL k | w1 a1
        a GET k
        w DEL k
        w EXPIRE l 100
        a GET l
        a EXISTS m
        a STRLEN m
        a TYPE m
        w EXPIRE l 50 | w1 a1
        w PERSIST l
        w SET m 1 | w1 a1
        a GET k
        w FLUSHDB | w1 a1
        w FLUSHALL | w1 a1
        a FLUSHALL | a2
        a GET k
        a FLUSHDB | a2
        a MULTI
        a GET k
        a EXEC
        w SET k 1 | w1 a1
        a CLIENT TRACKING on BCAST
        a CLIENT TRACKING on OPTIN
        a CLIENT TRACKING off
        a CLIENT TRACKINGINFO
        a CLIENT TRACKING on PREFIX x
        a CLIENT TRACKING on BCAST OPTIN
        a CLIENT TRACKING on BCAST OPTOUT
        a CLIENT TRACKING on OPTIN OPTOUT
        a CLIENT TRACKING on BCAST PREFIX ab PREFIX a
        a CLIENT TRACKING on BCAST PREFIX a PREFIX ab
        a CLIENT TRACKING bad
        a CLIENT TRACKING on bad
        a CLIENT TRACKING on REDIRECT x
        a CLIENT TRACKING on REDIRECT 99999
        a CLIENT TRACKING on REDIRECT
        a CLIENT TRACKING bad REDIRECT 99999
        a CLIENT TRACKING on BCAST PREFIX a: PREFIX b:
        a CLIENT TRACKINGINFO
        a CLIENT TRACKING on
        a CLIENT TRACKING on BCAST PREFIX a:x
        a CLIENT TRACKING on BCAST PREFIX c:
        a CLIENT TRACKINGINFO
        w SET a:1 1 | w1 a1
        w SET d 1
        w MSET a:3 1 a:2 2 b:1 3 a:3 4 | w1 a2
        a SET a:1 1 | a2
        w DEL nope
        w DEL a:1 a:2 | w1 a1
        w FLUSHALL | w1 a1
        a MULTI
        a SET a:9 1
        a SET a:8 1
        a EXEC | a2
        a CLIENT TRACKING off
        a CLIENT TRACKING on BCAST NOLOOP
        a CLIENT TRACKINGINFO
        a SET a 1
        w SET a 2 | w1 a1
        a CLIENT TRACKING off
        a CLIENT TRACKING on OPTIN
        a CLIENT TRACKING on OPTOUT
        a CLIENT TRACKINGINFO
        a CLIENT CACHING no
        a GET a
        w SET a 1
        a CLIENT CACHING yes
        a CLIENT TRACKINGINFO
        a CLIENT GETNAME
        a GET a
        a GET z
        w SET a 1 | w1 a1
        w SET z 1
        a CLIENT CACHING yes
        a MULTI
        a GET a
        a GET z
        a EXEC
        w SET a 1 | w1 a1
        w SET z 1 | w1 a1
        a GET a
        w SET a 1
        a MULTI
        a CLIENT CACHING yes
        a GET a
        a GET z
        a EXEC
        w SET a 1 | w1 a1
        w SET z 1 | w1 a1
        a CLIENT TRACKING off
        a CLIENT TRACKING on OPTOUT NOLOOP
        a CLIENT TRACKINGINFO
        a CLIENT CACHING yes
        a CLIENT CACHING no
        a CLIENT TRACKINGINFO
        a GET a
        a GET z
        w SET a 1
        w SET z 1 | w1 a1
        a GET z
        a SET z 1
        w SET z 1
        a CLIENT TRACKING off
        a GET z
        w SET z 1
        # RESP2: nothing is told without a redirection.
        b CLIENT TRACKING on
        b GET z
        w SET z 1
        b CLIENT TRACKING off
        r PING
        b CLIENT TRACKING on REDIRECT {r} REDIRECT {r}
        b CLIENT TRACKING on REDIRECT {r}
        b CLIENT TRACKINGINFO
        b GET a
        w SET a 1
        b GET a
        r SUBSCRIBE other
        w SET a 1 | w1 r1
        r SUBSCRIBE __redis__:invalidate
        b GET a
        b MGET a z
        w SET a 1 | w1 r1
        w FLUSHALL | w1 r1
        b HELLO 3
        b GET a
        q HELLO 3
        q SUBSCRIBE __redis__:invalidate
        b CLIENT TRACKING on REDIRECT {q}
        b GET a
        w SET a 1 | w1 q1
        b CLIENT TRACKING off
        b CLIENT TRACKING on BCAST REDIRECT {q}
        w MSET a 1 b 2 | w1 q1
        q QUIT
        q EOF
        w SET a 1 | w1 b1
        b CLIENT TRACKINGINFO
        """#

    /// The event of each command that changes entries; `k` receives all of them.
    static let events = #"""
        k HELLO 3
        k PSUBSCRIBE __key*
        w SETEX a 100 1 | w1 k4
        w PSETEX a 100000 1 | w1 k4
        w SETNX n 1 | w1 k2
        w SETNX n 1
        w GETSET n 2 | w1 k2
        w MSETNX a 1 q 1
        w MSETNX q1 1 q2 1 | w1 k4
        w APPEND a x | w1 k2
        w SETRANGE a 0 x | w1 k2
        w INCR c | w1 k2
        w DECR c | w1 k2
        w INCRBY c 2 | w1 k2
        w DECRBY c 1 | w1 k2
        w INCRBYFLOAT c 1 | w1 k2
        w SETBIT d 0 1 | w1 k2
        w BITOP AND e d | w1 k2
        w BITOP AND nn nothing
        w BITOP AND e nothing | w1 k2
        w BITFIELD d SET u8 0 1 | w1 k2
        w GETDEL d | w1 k2
        w GETEX a EX 100 | w1 k2
        w GETEX a PERSIST | w1 k2
        w GETEX a
        w SET r 1 | w1 k2
        w RENAME r r2 | w1 k4
        w RENAMENX r2 r | w1 k4
        w COPY r rc | w1 k2
        w COPY r rc REPLACE | w1 k2
        w MOVE r 3 | w1 k4
        w TOUCH rc
        w UNLINK rc | w1 k2
        w CONFIG SET notify-keyspace-events Kx
        w SET r 1
        w CONFIG GET notify-keyspace-events
        w CONFIG SET notify-keyspace-events bad
        w CONFIG SET notify-keyspace-events ""
        w CONFIG GET notify-keyspace-events
        """#

    /// `k` receives all notifications in RESP3, `l` in RESP2.
    static let notifications = #"""
        k HELLO 3
        k PSUBSCRIBE __key*
        l SUBSCRIBE __keyevent@0__:del __keyspace@0__:a | l2
        w SET a 1 | w1 k4 l1
        w SET a 1 EX 100 | w1 k4 l2
        w SET b 1 PX 100000 | w1 k6
        w MSET a 1 b 2 | w1 k4 l1
        w EXPIRE a 100 | w1 k2 l1
        w PEXPIRE a 100000 NX
        w EXPIRE a -1 | w1 k2 l2
        w SET b 1 EX 10 | w1 k4
        w PERSIST b | w1 k2
        w PERSIST b
        w SET b 2 EX 100 | w1 k4
        w SET b 1 KEEPTTL | w1 k2
        w SET b 1 XX | w1 k2
        w SET b 1 NX
        w GETDEL b | w1 k2 l1
        w SET c 1 GET | w1 k4
        w DEL c nothing | w1 k2 l1
        w UNLINK c
        w MULTI
        w SET t 1
        w DEL t
        w EXEC | w1 k6 l1
        w SELECT 3
        w SET a 1 | w1 k4
        w DEL a | w1 k2
        w SELECT 0
        w MSET r 1 s 2 | w1 k8
        w RENAME r t | w1 k6
        w RENAME t s | w1 k6
        w RENAMENX s r | w1 k6
        w COPY r s | w1 k4
        w COPY r s REPLACE | w1 k4
        w COPY r r DB 3 | w1 k4
        w COPY r r DB 3 REPLACE | w1 k4
        w MOVE r 2 | w1 k6
        w SET s 1 EXAT 4000000000 | w1 k4
        w SET s 1 EXAT 4000000000 | w1 k4
        w SET s 1 KEEPTTL | w1 k2
        w DUMP s
        w RESTORE s 0 "\x00\x05\x68\x65\x6c\x6c\x6f\x0a\x00\x63\x72\xdf\x76\x65\x34\x20\x0a" REPLACE | w1 k4
        w MULTI
        w RENAME s u
        w SET u 2
        w EXEC | w1 k8
        w SET f 1 | w1 k4
        w FLUSHDB
        w SET g 1 | w1 k4
        w GETEX g PERSIST
        w GETEX g EXAT 4000000000 | w1 k2
        w GETEX g EXAT 4000000000 | w1 k2
        w GETEX g PERSIST | w1 k2
        w GETEX g PERSIST
        w SETBIT bits 0 1 | w1 k4
        w SETBIT bits 0 1
        w SETBIT bits 1 0
        w SETBIT bits 8 0 | w1 k2
        w BITFIELD bits SET u8 0 128
        w BITFIELD bits SET u8 0 129 | w1 k2
        w BITFIELD bits SET u8 0 129 INCRBY u8 8 0 GET u8 0
        w BITFIELD bits SET u8 0 129 INCRBY u8 8 1 GET u8 0 | w1 k2
        w BITFIELD bits OVERFLOW FAIL INCRBY u8 0 127
        w MULTI
        w SET t 1
        w SELECT 2
        w SET t 1
        w SELECT 0
        w SET t2 1
        w MOVE t 4
        w COPY t2 t3 DB 5
        w SET t 2
        w EXEC | w1 k26
        w MSET u1 1 u2 2 | w1 k8
        w MULTI
        w MSET u1 1 u2 2
        w SET u1 3
        w SETEX u2 1000 1
        w EXEC | w1 k10
        w MULTI
        w SELECT 4
        w SET t4 1
        w MOVE t4 0
        w SELECT 0
        w RENAME t4 t5
        w DEL t5
        w EXEC | w1 k18 l1
        w SELECT 0
        """#
}
