extension ConformanceScript {
    /// Commands that give an entry another key or another database.
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
        """#
        + "\n"
}
