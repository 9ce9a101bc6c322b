extension ConformanceScript {
    static let transactions = #"""
        FLUSHALL
        EXEC
        DISCARD
        UNWATCH
        MULTI x
        EXEC x
        DISCARD x
        WATCH
        UNWATCH x
        MULTI
        MULTI
        EXEC
        MULTI
        PING
        EXEC
        MULTI
        SET ta 1
        GET ta
        SET ta 2 EX 0
        DEL ta
        GET ta
        MSET ta 1 tb 2
        MSET ta 1 tb
        MGET ta tb tc
        EXISTS ta tb tc ta
        EXPIRE ta 100
        TTL ta
        PERSIST ta
        TTL ta
        TYPE ta
        STRLEN tb
        SET tb 3 GET
        SET tb 4 NX
        SET tc 4 NX GET
        GETDEL tc
        SELECT 3
        GET ta
        SET ta inthree
        GET ta
        SELECT 99
        SELECT 0
        GET ta
        ECHO hello
        PING
        ping x
        ping x y
        CLIENT SETNAME "a b"
        CLIENT SETNAME trans
        CLIENT GETNAME
        UNWATCH
        UNLINK tb
        EXEC
        SELECT 3
        GET ta
        FLUSHDB
        SELECT 0
        GET ta
        MGET ta tb tc
        EXEC
        MULTI
        NOSUCH
        EXEC
        MULTI
        SET ta
        SET ta aborted
        EXEC
        GET ta
        MULTI
        NOSUCH
        DISCARD
        EXEC
        MULTI
        SHUTDOWN
        EXEC
        MULTI
        MULTI
        # What the first try changes must not be seen by the second: MOVE finds a database without files.
        CLIENT SETNAME before
        SET moved 1
        MULTI
        CLIENT GETNAME
        CLIENT SETNAME within
        MOVE moved 11
        COPY moved moved DB 12
        CLIENT GETNAME
        EXEC
        CLIENT SETNAME ""
        MULTI
        SELECT 11
        SET moved 2
        COPY moved other DB 0
        MOVE moved 0
        MOVE moved 0
        GET moved
        SELECT 0
        MGET moved other
        DEL moved other
        EXEC
        SETBIT watchedbits 0 1
        WATCH watchedbits
        SETBIT watchedbits 0 1
        BITFIELD watchedbits SET u4 0 8
        GETEX watchedbits PERSIST
        MULTI
        EXEC
        WATCH watchedbits
        SETBIT watchedbits 1 1
        MULTI
        EXEC
        DEL watchedbits
        WATCH ta
        SET ta 5
        EXEC
        GET ta
        WATCH ta
        SET ta 6
        MULTI
        SET ta 7
        EXEC
        GET ta
        WATCH ta
        GET ta
        MULTI
        SET ta 8
        EXEC
        WATCH ta nothing ta
        DEL nothing
        MULTI
        EXEC
        WATCH ta
        SET ta 9
        UNWATCH
        MULTI
        EXEC
        WATCH ta
        SET ta 10
        DISCARD
        MULTI
        DISCARD
        MULTI
        EXEC
        WATCH ta
        SET ta 11
        MULTI
        NOSUCH
        EXEC
        MULTI
        EXEC
        WATCH ta
        EXPIRE ta 100
        MULTI
        EXEC
        WATCH nothing
        EXPIRE nothing 100
        PERSIST nothing
        MULTI
        EXEC
        WATCH ta
        FLUSHDB
        MULTI
        EXEC
        WATCH ta
        FLUSHALL
        MULTI
        EXEC
        MULTI
        SET ta 1
        SET tb 2
        DBSIZE
        FLUSHDB
        SET tc 3
        DBSIZE
        KEYS *
        GET ta
        SCAN 0
        FLUSHALL ASYNC
        DBSIZE
        COMMAND INFO nosuch
        INFO nosuch
        EXEC
        MULTI
        HELLO 9
        EXEC
        MULTI
        HELLO 3 BAD
        GET nothing
        EXEC
        FLUSHALL
        """#
        + "\n"
}
