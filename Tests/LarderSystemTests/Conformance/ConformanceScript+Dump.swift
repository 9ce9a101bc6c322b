extension ConformanceScript {
    /// DUMP and RESTORE, OBJECT and MEMORY. The payloads were made by Redis 7.0.
    static let dumps = #"""
        FLUSHALL
        DUMP
        DUMP nothing
        DUMP a b
        SET k hello
        DUMP k
        SET k ""
        DUMP k
        SET k 0
        DUMP k
        SET k 127
        DUMP k
        SET k 128
        DUMP k
        SET k -128
        DUMP k
        SET k -129
        DUMP k
        SET k 32767
        DUMP k
        SET k 32768
        DUMP k
        SET k -32769
        DUMP k
        SET k 2147483647
        DUMP k
        SET k -2147483648
        DUMP k
        SET k 2147483648
        DUMP k
        SET k -9223372036854775808
        DUMP k
        SET k 007
        DUMP k
        SET k -0
        DUMP k
        SET k aaaaaaaaaaaaaaaaaaaa
        DUMP k
        SET k aaaaaaaaaaaaaaaaaaaaa
        DUMP k
        SET k abcabcabcabcabcabcabcabcabcabcabcabcabc
        DUMP k
        SET k "no two letters alike: qwertzuiop"
        DUMP k
        SETRANGE k 70 x
        DUMP k
        SETRANGE k 1000 "the end"
        DUMP k
        SETRANGE k 20000 "the end"
        DUMP k
        APPEND k "\x00\xff\x00\xff\x00\xff\x00\xff\x00\xff\x00\xff\x00\xff\x00\xff"
        DUMP k
        RESTORE
        RESTORE r 0
        RESTORE r 0 bad
        RESTORE r 0 ""
        RESTORE r 0 bad REPLACE BAD
        RESTORE r abc bad
        RESTORE r -1 bad
        RESTORE r 9223372036854775807 bad
        RESTORE r 9223372036854775807 bad REPLACE ABSTTL
        RESTORE r 99999999999999999999 bad
        RESTORE r 0 x IDLETIME -1
        RESTORE r 0 x IDLETIME abc
        RESTORE r 0 x FREQ 256
        RESTORE r 0 x FREQ -1
        RESTORE r 0 x FREQ abc
        RESTORE r 0 x FREQ 1 IDLETIME 1
        RESTORE r 0 x IDLETIME 1 FREQ 1
        # hello
        RESTORE r 0 "\x00\x05\x68\x65\x6c\x6c\x6f\x0a\x00\x63\x72\xdf\x76\x65\x34\x20\x0a" REPLACE
        GET r
        # of an older version
        RESTORE r 0 "\x00\x05\x68\x65\x6c\x6c\x6f\x06\x00\xf5\x9f\xb7\xf6\x90\x61\x1c\x99" REPLACE
        GET r
        # of a newer version
        RESTORE r 0 "\x00\x05\x68\x65\x6c\x6c\x6f\x0b\x00\x0a\xad\x62\x05\x98\xab\xc9\x83" REPLACE
        GET r
        # with a wrong checksum
        RESTORE r 0 "\x00\x05\x68\x65\x6c\x6c\x6f\x0a\x00\x62\x72\xdf\x76\x65\x34\x20\x0a" REPLACE
        GET r
        # integers
        RESTORE r 0 "\x00\xc0\x80\x0a\x00\x99\x66\x32\x6d\x2f\x0c\x5b\xd9" REPLACE
        GET r
        # 16 bits
        RESTORE r 0 "\x00\xc1\xff\x7f\x0a\x00\x49\x5a\x37\xda\x17\xf4\xd5\x2b" REPLACE
        GET r
        # 32 bits
        RESTORE r 0 "\x00\xc2\x00\x00\x00\x80\x0a\x00\xc7\x4f\x87\x3e\x33\x55\x81\x87" REPLACE
        GET r
        # a length of 14 bits
        RESTORE r 0 "\x00\x40\x05\x68\x65\x6c\x6c\x6f\x0a\x00\x72\xa3\x84\x04\x60\x74\x27\x04" REPLACE
        GET r
        # of 32 bits
        RESTORE r 0 "\x00\x80\x00\x00\x00\x05\x68\x65\x6c\x6c\x6f\x0a\x00\xd0\xe4\x12\xe2\x35\xd9\x94\x1a" REPLACE
        GET r
        # of 64 bits
        RESTORE r 0 "\x00\x81\x00\x00\x00\x00\x00\x00\x00\x05\x68\x65\x6c\x6c\x6f\x0a\x00\x52\x45\xfd\xd6\xf8\x80\xae\xf8" REPLACE
        GET r
        # LZF
        RESTORE r 0 "\x00\xc3\x09\x1e\x02\x61\x62\x63\xe0\x12\x02\x01\x62\x63\x0a\x00\x1a\xbc\x4f\x40\xb6\x7c\x80\x19" REPLACE
        GET r
        # LZF of another length
        RESTORE r 0 "\x00\xc3\x09\x1d\x02\x61\x62\x63\xe0\x12\x02\x01\x62\x63\x0a\x00\x26\x8e\x68\xe7\xfa\x94\x9b\x89" REPLACE
        GET r
        # LZF that refers in front of its beginning
        RESTORE r 0 "\x00\xc3\x04\x05\x00\x61\x20\x05\x0a\x00\x25\x2f\xf4\x5e\xc2\xe0\x3a\x1f" REPLACE
        GET r
        # LZF that ends too early
        RESTORE r 0 "\x00\xc3\x02\x05\x05\x61\x0a\x00\xbd\x55\xf4\x18\x4f\x82\xec\x32" REPLACE
        GET r
        # bytes behind the value
        RESTORE r 0 "\x00\x05\x68\x65\x6c\x6c\x6f\x6d\x6f\x72\x65\x0a\x00\xf1\x36\x52\x8e\x04\x57\xc7\x97" REPLACE
        GET r
        # too short
        RESTORE r 0 "\x00\x20\x68\x65\x6c\x6c\x0a\x00\xeb\x7c\xc3\x3e\x04\x97\x7f\xdf" REPLACE
        GET r
        # values that say they are longer than they are, with a right checksum
        RESTORE r 0 "\x00\x07\x68\x65\x6c\x6c\x6f\x0a\x00\xeb\xfa\x01\xe4\x4e\x34\x1a\x7a" REPLACE
        GET r
        RESTORE r 0 "\x00\x0f\x68\x65\x6c\x6c\x6f\x0a\x00\xa0\x4b\xec\xf7\xb3\x12\xab\x91" REPLACE
        GET r
        RESTORE r 0 "\x00\x10\x68\x65\x6c\x6c\x6f\x0a\x00\xca\xd6\x41\xe5\x8e\x5f\x72\x2e" REPLACE
        GET r
        RESTORE r 0 "\x00\xc2\x01\x02\x0a\x00\x87\x80\x16\xb6\x7b\x25\xd3\x0f" REPLACE
        GET r
        RESTORE r 0 "\x00\xc2\x0a\x00\xfe\x05\x5f\xb7\x9a\x1a\x87\x35" REPLACE
        GET r
        RESTORE r 0 "\x00\xc1\x01\x0a\x00\x20\x1b\x9e\x3a\xb2\x69\xf0\x70" REPLACE
        GET r
        RESTORE r 0 "\x00\xc3\x06\x05\x01\x61\x62\x0a\x00\xdd\x8c\xc7\x20\x3d\xb5\x33\xca" REPLACE
        GET r
        # an unknown encoding
        RESTORE r 0 "\x00\xc4\x78\x0a\x00\x2f\x92\xce\x6b\x01\x42\x3f\xeb" REPLACE
        GET r
        # nothing
        RESTORE r 0 "\x0a\x00\x5d\x9b\x5c\x40\x0f\x7f\xa2\xda" REPLACE
        GET r
        # only a type
        RESTORE r 0 "\x00\x0a\x00\x5d\x9b\x5c\x40\x0f\x7f\xa2\xda" REPLACE
        GET r
        # a type that nobody has
        RESTORE r 0 "\xf0\x05\x68\x65\x6c\x6c\x6f\x0a\x00\x46\xf9\xad\xd3\xfd\xcd\x7d\x56" REPLACE
        GET r
        RESTORE r 1000000 "\x00\x05\x68\x65\x6c\x6c\x6f\x0a\x00\x63\x72\xdf\x76\x65\x34\x20\x0a" REPLACE 
        EXISTS r
        @PEXPIRETIME r
        RESTORE r 1000000 "\x00\x05\x68\x65\x6c\x6c\x6f\x0a\x00\x63\x72\xdf\x76\x65\x34\x20\x0a" REPLACE ABSTTL
        EXISTS r
        @PEXPIRETIME r
        RESTORE r 4102444800000 "\x00\x05\x68\x65\x6c\x6c\x6f\x0a\x00\x63\x72\xdf\x76\x65\x34\x20\x0a" REPLACE ABSTTL
        EXISTS r
        @PEXPIRETIME r
        RESTORE r 1 "\x00\x05\x68\x65\x6c\x6c\x6f\x0a\x00\x63\x72\xdf\x76\x65\x34\x20\x0a" REPLACE ABSTTL
        EXISTS r
        @PEXPIRETIME r
        RESTORE r 0 "\x00\x05\x68\x65\x6c\x6c\x6f\x0a\x00\x63\x72\xdf\x76\x65\x34\x20\x0a" REPLACE ABSTTL
        EXISTS r
        @PEXPIRETIME r
        RESTORE r 9223372036854775807 "\x00\x05\x68\x65\x6c\x6c\x6f\x0a\x00\x63\x72\xdf\x76\x65\x34\x20\x0a" REPLACE ABSTTL
        EXISTS r
        @PEXPIRETIME r
        SET r old EX 100
        RESTORE r 0 "\x00\x05\x68\x65\x6c\x6c\x6f\x0a\x00\x63\x72\xdf\x76\x65\x34\x20\x0a"
        RESTORE r 0 "\x00\x05\x68\x65\x6c\x6c\x6f\x0a\x00\x63\x72\xdf\x76\x65\x34\x20\x0a" replace idletime 5
        TTL r
        RESTORE r 0 "\x00\x05\x68\x65\x6c\x6c\x6f\x0a\x00\x63\x72\xdf\x76\x65\x34\x20\x0a" REPLACE FREQ 255
        GET r
        DEL r
        RESTORE r 1 "\x00\x05\x68\x65\x6c\x6c\x6f\x0a\x00\x63\x72\xdf\x76\x65\x34\x20\x0a" ABSTTL
        EXISTS r
        RESTORE r 0 "\x00\x05\x68\x65\x6c\x6c\x6f\x0a\x00\x63\x72\xdf\x76\x65\x34\x20\x0a" IDLETIME 1
        GET r
        SET busy 1
        RESTORE busy 0 bad
        RESTORE busy abc bad
        RESTORE busy 0 bad REPLACE
        EXISTS busy
        OBJECT
        OBJECT ENCODING
        OBJECT ENCODING a b
        OBJECT BAD
        OBJECT BAD a b
        OBJECT HELP x
        OBJECT FREQ
        OBJECT IDLETIME
        OBJECT REFCOUNT
        FLUSHALL
        SET k v
        OBJECT ENCODING k
        object encoding k
        OBJECT FREQ k
        @OBJECT IDLETIME k
        OBJECT REFCOUNT k
        OBJECT ENCODING nothing
        OBJECT FREQ nothing
        OBJECT IDLETIME nothing
        OBJECT REFCOUNT nothing
        SET k 9223372036854775807
        OBJECT ENCODING k
        OBJECT REFCOUNT k
        SET k 9223372036854775808
        OBJECT ENCODING k
        SET k 9999
        OBJECT REFCOUNT k
        SET k 10000
        OBJECT REFCOUNT k
        INCR k
        OBJECT ENCODING k
        SET k 00
        OBJECT ENCODING k
        SET k ""
        OBJECT ENCODING k
        SET k aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
        OBJECT ENCODING k
        SET k aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
        OBJECT ENCODING k
        MEMORY
        MEMORY BAD
        MEMORY USAGE
        MEMORY USAGE nothing
        MEMORY USAGE nothing BAD
        MEMORY USAGE nothing SAMPLES
        MEMORY USAGE nothing SAMPLES 0
        MEMORY USAGE nothing SAMPLES -1
        MEMORY USAGE nothing SAMPLES abc
        MEMORY USAGE nothing samples 5 SAMPLES 1
        MEMORY PURGE
        MEMORY PURGE x
        MEMORY STATS x
        MEMORY DOCTOR x
        MEMORY MALLOC-STATS x
        MEMORY HELP x
        FLUSHALL
        """#
        + "\n"
}
