extension ConformanceScript {
    /// Commands that treat values as sequences of bits, and the longest common subsequence.
    static let bits = singleBits + bitFields + sequences

    private static let singleBits = #"""
        FLUSHALL
        SETBIT
        SETBIT k
        SETBIT k 1
        SETBIT k 1 1 1
        SETBIT k 7 1
        SETBIT k 7 0
        SETBIT k 7 1
        SETBIT k 0 1
        GET k
        SETBIT k 20 1
        GET k
        SETBIT k 40 0
        GET k
        SETBIT k -1 1
        SETBIT k abc 1
        SETBIT k #1 1
        SETBIT k 4294967296 1
        SETBIT k 9223372036854775808 1
        SETBIT k 1 2
        SETBIT k 1 -1
        SETBIT k 1 abc
        SETBIT k abc abc
        SETBIT nothing 5 0
        GET nothing
        SET n 10 EX 100
        SETBIT n 2 0
        TTL n
        GET n
        GETBIT
        GETBIT k
        GETBIT k 1 2
        GETBIT k 0
        GETBIT k 1
        GETBIT k 7
        GETBIT k 20
        GETBIT k 1000
        GETBIT k 4294967295
        GETBIT k 4294967296
        GETBIT k -1
        GETBIT k abc
        GETBIT gone 5
        GETBIT gone abc
        SET bits "\xff\xf0\x00"
        BITCOUNT
        BITCOUNT bits
        BITCOUNT bits 0
        BITCOUNT bits 0 0
        BITCOUNT bits 0 -1
        BITCOUNT bits 1 1
        BITCOUNT bits -2 -1
        BITCOUNT bits 2 1
        BITCOUNT bits -1 -2
        BITCOUNT bits -100 100
        BITCOUNT bits 5 30 BIT
        BITCOUNT bits 5 11 bit
        BITCOUNT bits 0 -1 BIT
        BITCOUNT bits -8 -1 BIT
        BITCOUNT bits -100 3 BIT
        BITCOUNT bits 3 2 BIT
        BITCOUNT bits 0 1 BYTE
        BITCOUNT bits 0 1 byte x
        BITCOUNT bits 0 1 BAD
        BITCOUNT bits abc 1
        BITCOUNT bits 0 abc
        BITCOUNT bits abc 1 BAD
        BITCOUNT gone
        BITCOUNT gone abc
        BITCOUNT gone 0
        BITCOUNT gone 0 1 BAD
        BITCOUNT gone abc 1
        SET empty ""
        BITCOUNT empty
        BITCOUNT empty 0 -1
        BITCOUNT empty 0 -1 BIT
        BITPOS
        BITPOS bits
        BITPOS bits 2
        BITPOS bits -1
        BITPOS bits abc
        BITPOS bits 1
        BITPOS bits 0
        BITPOS bits 1 1
        BITPOS bits 1 2
        BITPOS bits 1 3
        BITPOS bits 0 0 0
        BITPOS bits 0 0 1
        BITPOS bits 0 1
        BITPOS bits 1 -1
        BITPOS bits 1 -2
        BITPOS bits 1 -100 -200
        BITPOS bits 0 -100 -200
        BITPOS bits 0 2 1
        BITPOS bits 1 5 30 BIT
        BITPOS bits 0 5 30 BIT
        BITPOS bits 0 5 10 BIT
        BITPOS bits 1 13 20 BIT
        BITPOS bits 1 0 -1 BYTE
        BITPOS bits 1 0 -1 BAD
        BITPOS bits 1 0 -1 BIT x
        BITPOS bits 1 abc
        BITPOS bits 1 0 abc
        BITPOS bits 1 abc 0 BAD
        SET ones "\xff\xff"
        BITPOS ones 0
        BITPOS ones 0 0
        BITPOS ones 0 1
        BITPOS ones 0 2
        BITPOS ones 0 0 -1
        BITPOS ones 0 0 -1 BIT
        BITPOS empty 0
        BITPOS empty 1
        BITPOS empty 0 0
        BITPOS empty 0 0 -1
        BITPOS gone 0
        BITPOS gone 1
        BITPOS gone 0 0 -1
        BITPOS gone 1 abc
        BITPOS gone 2
        BITOP
        BITOP AND
        BITOP AND dest
        BITOP BAD dest a
        BITOP NOT dest a b
        SET a "\xff\x0f\x33"
        SET b "\xf0\xff"
        BITOP AND dest a b
        GET dest
        BITOP or dest a b
        GET dest
        BITOP XOR dest a b
        GET dest
        BITOP NOT dest a
        GET dest
        BITOP AND dest a gone
        GET dest
        BITOP AND dest gone a
        GET dest
        BITOP OR dest gone a
        GET dest
        BITOP XOR dest a a a
        GET dest
        BITOP XOR dest a a
        GET dest
        BITOP NOT a a
        GET a
        BITOP OR a a b
        GET a
        EXPIRE dest 100
        BITOP AND dest a b
        TTL dest
        BITOP AND dest gone
        EXISTS dest
        BITOP NOT dest gone
        BITOP OR dest empty
        EXISTS dest
        """#
        + "\n"

    private static let bitFields = #"""
        FLUSHALL
        BITFIELD
        BITFIELD k
        EXISTS k
        BITFIELD k GET u8 0
        BITFIELD k GET u8 4294967295
        BITCOUNT k -1 -3 BAD
        BITCOUNT k -3 -1 BAD
        BITCOUNT k 3 1 BAD
        BITPOS k 1 -1 -3 BAD
        BITPOS k 1 0 x BAD
        BITFIELD k GET i64 #67108863
        BITFIELD k GET i64 #67108864
        BITFIELD k GET u8 4294967296
        BITFIELD_RO k GET u63 4294967295
        EXISTS k
        BITFIELD k SET u8 0 255
        BITFIELD k SET u8 0 1 GET u8 0 INCRBY u8 0 10
        GET k
        BITFIELD k INCRBY i5 100 1 GET u4 0
        BITFIELD k SET i8 #1 -128 GET i8 8 GET u8 8
        BITFIELD k INCRBY i8 #1 -1
        BITFIELD k OVERFLOW SAT INCRBY i8 #1 100 INCRBY i8 #1 -1000
        BITFIELD k OVERFLOW FAIL INCRBY u8 0 1000 OVERFLOW WRAP INCRBY u8 0 1000
        BITFIELD k OVERFLOW SAT INCRBY u8 0 1000 INCRBY u8 0 -1000
        BITFIELD k OVERFLOW FAIL SET u8 0 256 SET u8 0 -1 SET i8 0 128
        BITFIELD k OVERFLOW SAT SET u8 0 256 GET u8 0 SET u8 0 -1 GET u8 0 SET i8 0 -1000 GET i8 0
        BITFIELD k OVERFLOW SAT SET i8 0 -9223372036854775808 GET i8 0 SET i8 0 9223372036854775807 GET i8 0
        BITFIELD k OVERFLOW WRAP SET i8 0 -9223372036854775808 GET i8 0 SET u8 0 511 GET u8 0
        BITFIELD k SET i64 0 -9223372036854775808 GET i64 0 INCRBY i64 0 -1
        BITFIELD k OVERFLOW SAT INCRBY i64 0 9223372036854775807 INCRBY i64 0 9223372036854775807
        BITFIELD k SET u63 1 9223372036854775807 GET u63 1 INCRBY u63 1 1
        BITFIELD k OVERFLOW SAT INCRBY u63 1 9223372036854775807 INCRBY u63 1 -9223372036854775808
        BITFIELD k SET u1 0 1 SET u1 1 0 INCRBY u1 0 1 INCRBY i1 2 1 GET i1 2
        BITFIELD k SET i1 0 0 SET i1 0 1 GET i1 0 SET i1 0 -1 GET i1 0
        BITFIELD k GET u3 5 GET i3 5 GET u13 7 GET i33 3
        BITFIELD k GET u8 1000 GET i64 4294967200
        STRLEN k
        BITFIELD k GET
        BITFIELD k GET u8
        BITFIELD k SET u8 0
        BITFIELD k INCRBY u8 0
        BITFIELD k OVERFLOW
        BITFIELD k OVERFLOW BAD
        BITFIELD k OVERFLOW SAT
        BITFIELD k BAD u8 0
        BITFIELD k GET u64 0
        BITFIELD k GET u0 0
        BITFIELD k GET i65 0
        BITFIELD k GET i0 0
        BITFIELD k GET i-1 0
        BITFIELD k GET x8 0
        BITFIELD k GET U8 0
        BITFIELD k GET 8 0
        BITFIELD k GET u 0
        BITFIELD k GET "" 0
        BITFIELD k GET u8 -1
        BITFIELD k GET u8 abc
        BITFIELD k GET u8 #
        BITFIELD k GET u8 #-1
        BITFIELD k GET u8 ##1
        BITFIELD k GET u8 4294967296
        BITFIELD k GET u8 #536870912
        BITFIELD k GET u8 99999999999999999999
        BITFIELD k SET u8 0 abc
        BITFIELD k SET u8 abc abc
        BITFIELD k SET u8 0 99999999999999999999
        BITFIELD k SET u8 0 1 BAD
        BITFIELD k get u8 0 overflow sat set u8 0 300 incrby u8 0 1
        SET ttl "\x01" EX 100
        BITFIELD ttl INCRBY u8 0 1
        TTL ttl
        BITFIELD fail OVERFLOW FAIL SET u8 8 256
        GET fail
        BITFIELD_RO
        BITFIELD_RO k
        BITFIELD_RO k GET u8 0 GET u8 8
        BITFIELD_RO k SET u8 0 1
        BITFIELD_RO k GET u8 0 INCRBY u8 0 1
        BITFIELD_RO k BAD
        BITFIELD_RO k OVERFLOW SAT GET u8 0
        BITFIELD_RO gone GET u8 0
        EXISTS gone
        """#
        + "\n"

    private static let sequences = #"""
        FLUSHALL
        SET a ohmytext
        SET b mynewtext
        LCS
        LCS a
        LCS a b
        LCS a b LEN
        LCS a b IDX
        LCS a b IDX WITHMATCHLEN
        LCS a b IDX MINMATCHLEN 4
        LCS a b IDX MINMATCHLEN 4 WITHMATCHLEN
        LCS a b IDX MINMATCHLEN 5
        LCS a b IDX MINMATCHLEN -5
        LCS a b IDX MINMATCHLEN 0
        LCS a b IDX MINMATCHLEN
        LCS a b IDX MINMATCHLEN abc
        LCS a b LEN IDX
        LCS a b LEN WITHMATCHLEN
        LCS a b MINMATCHLEN 4
        LCS a b BAD
        LCS a b len
        LCS a a
        LCS a a IDX
        LCS a nothing
        LCS a nothing LEN
        LCS nothing a IDX
        LCS nothing nothing IDX WITHMATCHLEN
        LCS nothing nothing BAD
        MSET a abcabcabcabcabc b bcaabccbabcacb
        LCS a b
        LCS a b IDX WITHMATCHLEN
        LCS b a IDX WITHMATCHLEN
        SETRANGE a 12000 x
        SETRANGE b 12000 x
        LCS a b LEN
        """#
        + "\n"
}
