extension ConformanceScript {
    /// Commands that change the key or the database of an entry.
    static let moving = #"""
        FLUSHALL
        TOUCH
        TOUCH nothing
        MSET a 1 b 2
        TOUCH a b a nothing
        RENAME
        RENAME a
        RENAME a b c
        RENAME nothing x
        RENAME nothing nothing
        RENAME a a
        GET a
        EXPIRE a 100
        RENAME a c
        MGET a c
        TTL c
        RENAME c b
        GET b
        TTL b
        SET plain v
        RENAME plain b
        TTL b
        RENAMENX
        RENAMENX b
        RENAMENX nothing x
        RENAMENX nothing nothing
        RENAMENX b b
        RENAMENX b d
        SET e 5
        RENAMENX d e
        MGET d e
        RANDOMKEY x
        FLUSHALL
        RANDOMKEY
        SET only 1
        RANDOMKEY
        COPY
        COPY only
        COPY nothing x
        COPY nothing nothing
        COPY only only
        COPY only only REPLACE
        COPY only two
        GET two
        COPY only two
        SET only 2 EX 100
        COPY only two REPLACE
        GET two
        TTL two
        COPY only two BAD
        COPY only two DB
        COPY only two DB abc!
        COPY only two DB 16
        COPY only two DB -1
        COPY only two DB 9223372036854775807
        COPY only two DB 99999999999999999999
        COPY only two DB 3
        COPY only two DB 3
        COPY only two DB 3 REPLACE
        COPY only only DB 3 REPLACE REPLACE
        COPY only only DB 0
        COPY only only DB 0 DB 4
        COPY nothing x DB 5
        COPY nothing x BAD
        SELECT 3
        MGET only two
        TTL two
        SELECT 4
        GET only
        SELECT 0
        MOVE
        MOVE only
        MOVE only 1 2
        MOVE only 0
        MOVE nothing 0
        MOVE only abc!
        MOVE only 16
        MOVE only -1
        MOVE only 2147483648
        MOVE only 99999999999999999999
        MOVE nothing 1
        MOVE only 3
        MOVE only 1
        EXISTS only
        SELECT 1
        GET only
        TTL only
        MOVE only 0
        SELECT 0
        GET only
        SCAN 0 TYPE string COUNT 1000 MATCH only
        SCAN 0 TYPE STRING COUNT 1000 MATCH only
        SCAN 0 TYPE hash COUNT 1000
        FLUSHALL
        MSET a 1 b 2
        MULTI
        INCR a
        MOVE a 3
        COPY b c DB 4
        COPY b c DB 4
        RENAME b d
        RENAME b d
        SELECT 4
        APPEND c x
        MOVE c 0
        SELECT 0
        GETRANGE c 0 -1
        SETBIT bits 7 1
        DUMP bits
        BITOP NOT bits bits
        LCS c c IDX
        EXEC
        MGET a b c d bits
        SELECT 3
        GET a
        SELECT 0
        FLUSHALL
        SWAPDB
        SWAPDB 0
        SWAPDB 0 1 2
        SWAPDB "" 1
        SWAPDB 0 ""
        SWAPDB 99999999999999999999 0
        SWAPDB 0 99999999999999999999
        SWAPDB 16 0
        SWAPDB 0 16
        SWAPDB -1 0
        SWAPDB 0 0
        SWAPDB 7 8
        MSET both zero only0 a
        EXPIRE only0 1000
        SELECT 1
        MSET both one only1 b
        SWAPDB 0 1
        MGET both only0 only1
        TTL only0
        DBSIZE
        SELECT 0
        MGET both only0 only1
        DBSIZE
        SWAPDB 1 9
        SELECT 1
        DBSIZE
        SELECT 9
        GET both
        SELECT 0
        FLUSHALL
        """#
        + "\n"
}
