extension ConformanceScript {
    /// Further variants of SET and GET, parts of values, and numbers.
    static let values = storing + parts + numbers

    private static let storing = #"""
        FLUSHALL
        SETNX
        SETNX k
        SETNX k v x
        SETNX k v
        SETNX k w
        GET k
        SETNX gone v
        PEXPIRE gone 1000000
        SETNX gone w
        TTL gone
        SETEX
        SETEX k 10
        SETEX k 10 v x
        SETEX k 100 v
        TTL k
        SETEX k 0 v
        SETEX k -1 v
        SETEX k abc v
        SETEX k 1.5 v
        SETEX k 9223372036854775807 v
        SETEX k 9223372036854775 v
        SETEX nothing abc v
        PSETEX k 100000 v2
        TTL k
        GET k
        PSETEX k 0 v
        PSETEX k abc v
        PSETEX k 9223372036854775807 v
        PSETEX k
        GETSET
        GETSET k
        GETSET k v x
        GETSET k v3
        TTL k
        GETSET fresh v
        GET fresh
        GETEX
        GETEX nothing
        GETEX k
        GETEX k EX
        GETEX k EX abc
        GETEX nothing EX abc
        GETEX nothing EX 0
        GETEX k EX 0
        GETEX k EX -1
        GETEX k PX 0
        GETEX k EXAT 0
        GETEX k PXAT -1
        GETEX k EX 100
        TTL k
        GETEX k PX 200000
        TTL k
        GETEX k EXAT 4102444800
        EXPIRETIME k
        GETEX k PXAT 4102444800001
        PEXPIRETIME k
        GETEX k PERSIST
        TTL k
        GETEX k PERSIST
        GETEX k persist PERSIST
        GETEX k EX 100 EX 200
        TTL k
        GETEX k EX 100 PX 200
        GETEX k EX 100 PERSIST
        GETEX k PERSIST EX 100
        GETEX k EX 100 EXAT 4102444800
        GETEX k KEEPTTL
        GETEX k NX
        GETEX k BAD
        GETEX k EX 9223372036854775807
        GETEX k EX 9223372036854775
        GETEX k PX 9223372036854775807
        GETEX k EXAT 1
        EXISTS k
        SET k v
        GETEX k PXAT 1
        EXISTS k
        MSETNX
        MSETNX a
        MSETNX a 1 b
        MSETNX a 1 b 2 a 3
        MGET a b
        MSETNX c 1 a 2
        MGET c a
        MSETNX c 1 d 2
        MGET c d
        """#
        + "\n"

    private static let parts = #"""
        FLUSHALL
        APPEND
        APPEND k
        APPEND k v x
        APPEND k abc
        APPEND k "\x00\xff"
        GET k
        APPEND k ""
        APPEND new ""
        EXISTS new
        EXPIRE k 100
        APPEND k def
        TTL k
        SET n 10
        APPEND n 5
        GET n
        INCR n
        GETRANGE
        GETRANGE k
        GETRANGE k 0
        GETRANGE k 0 1 2
        GETRANGE k a 1
        GETRANGE k 1 a
        GETRANGE nothing a 1
        GETRANGE nothing 0 -1
        SET k "Hello World"
        GETRANGE k 0 -1
        GETRANGE k 0 4
        GETRANGE k -5 -1
        GETRANGE k 4 2
        GETRANGE k -2 -5
        GETRANGE k -100 3
        GETRANGE k 3 100
        GETRANGE k 100 200
        GETRANGE k -100 -50
        GETRANGE k -100 100
        GETRANGE k 11 11
        GETRANGE k 10 10
        GETRANGE k 0 0
        GETRANGE k -1 0
        GETRANGE k 9223372036854775807 -9223372036854775808
        GETRANGE k -9223372036854775808 9223372036854775807
        GETRANGE empty 0 -1
        SET empty ""
        GETRANGE empty 0 -1
        GETRANGE empty -5 5
        SUBSTR k 0 4
        SUBSTR k -3 -1
        SUBSTR k a b
        SUBSTR k
        SETRANGE
        SETRANGE k
        SETRANGE k 0
        SETRANGE k 0 v x
        SETRANGE k abc v
        SETRANGE k -1 v
        SETRANGE nothing -1 ""
        SETRANGE k 6 Redis
        GET k
        SETRANGE k 15 "!"
        GET k
        SETRANGE k 3 ""
        SETRANGE nothing 5 ""
        EXISTS nothing
        SETRANGE padded 5 x
        GET padded
        SETRANGE first 0 abc
        SETRANGE first 1 X
        GET first
        EXPIRE first 100
        SETRANGE first 2 Y
        TTL first
        SETRANGE first 536870912 x
        SETRANGE first 536870911 xy
        SETRANGE first 536870912 ""
        SETRANGE nothing 536870912 x
        SETRANGE nothing 536870912 ""
        SETRANGE first 9223372036854775807 xxxx
        SETRANGE first 9223372036854775808 x
        STRLEN first
        """#
        + "\n"

    private static let numbers = #"""
        FLUSHALL
        INCR
        INCR n x
        INCR n
        INCR n
        GET n
        DECR n
        DECR n
        DECR n
        DECR fresh
        INCRBY
        INCRBY n
        INCRBY n 5
        INCRBY n -10
        INCRBY n abc
        INCRBY n 1.5
        INCRBY n " 1"
        INCRBY n ""
        INCRBY n 9223372036854775808
        INCRBY n 0
        DECRBY n 5
        DECRBY n -5
        DECRBY n -9223372036854775808
        DECRBY n abc
        DECRBY n
        SET n 9223372036854775807
        INCR n
        INCRBY n 1
        DECR n
        SET n -9223372036854775808
        DECR n
        DECRBY n 1
        INCRBY n -1
        INCR n
        SET n abc
        INCR n
        DECR n
        INCRBY n 1
        SET n ""
        INCR n
        SET n " 1"
        INCR n
        SET n "1 "
        INCR n
        SET n 01
        INCR n
        SET n +1
        INCR n
        SET n -0
        INCR n
        SET n 99999999999999999999
        INCR n
        SET n 5 EX 100
        INCR n
        TTL n
        INCRBYFLOAT n 0.5
        TTL n
        FLUSHALL
        INCRBYFLOAT
        INCRBYFLOAT f
        INCRBYFLOAT f 1 2
        INCRBYFLOAT f 1.5
        INCRBYFLOAT f 1.5
        GET f
        INCRBYFLOAT f -1
        INCRBYFLOAT f abc
        INCRBYFLOAT f ""
        INCRBYFLOAT f " 1"
        INCRBYFLOAT f "1 "
        INCRBYFLOAT f 1e2
        INCRBYFLOAT f 1E-2
        INCRBYFLOAT f 0.1
        INCRBYFLOAT f 0.2
        INCRBYFLOAT f 3.0e3
        INCRBYFLOAT f 0x10
        INCRBYFLOAT f inf
        INCRBYFLOAT f -inf
        INCRBYFLOAT f +inf
        INCRBYFLOAT f nan
        INCRBYFLOAT f infinity
        INCRBYFLOAT f +1
        INCRBYFLOAT f .5
        INCRBYFLOAT f 5.
        INCRBYFLOAT f "1\x00"
        INCRBYFLOAT f 1e5000
        INCRBYFLOAT f 1e-5000
        INCRBYFLOAT f 1e300
        INCRBYFLOAT f 1e308
        INCRBYFLOAT f -1e308
        SET f 3.0
        INCRBYFLOAT f 0
        SET f 10.50
        INCRBYFLOAT f 0.1
        SET f 5.0e3
        INCRBYFLOAT f 2.0e2
        SET f 1
        INCRBYFLOAT f -1
        SET f -0.0
        INCRBYFLOAT f -0.0
        SET f 0.1
        INCRBYFLOAT f 0.7
        INCRBYFLOAT f 123456789012345678
        INCRBYFLOAT f 0.00000000000000001
        SET f 17179869184
        INCRBYFLOAT f 1.5
        SET f abc
        INCRBYFLOAT f 1
        SET f "1\x00"
        INCRBYFLOAT f 1
        SET f ""
        INCRBYFLOAT f 1
        SET f 1000000000000000000000000000000
        INCRBYFLOAT f 1
        INCR f
        """#
        + "\n"
}
