import LarderRESP

/// The names of frequent commands and options as integers, which can be compared quickly.
extension ShortWord {
    static var del: ShortWord { ShortWord(constant: 0x6C_65_64, length: 3) }
    static var unlink: ShortWord { ShortWord(constant: 0x6B_6E_69_6C_6E_75, length: 6) }
    static var ttl: ShortWord { ShortWord(constant: 0x6C_74_74, length: 3) }
    static var pttl: ShortWord { ShortWord(constant: 0x6C_74_74_70, length: 4) }
    static var incr: ShortWord { ShortWord(constant: 0x72_63_6E_69, length: 4) }
    static var decr: ShortWord { ShortWord(constant: 0x72_63_65_64, length: 4) }
    static var incrby: ShortWord { ShortWord(constant: 0x79_62_72_63_6E_69, length: 6) }
    static var decrby: ShortWord { ShortWord(constant: 0x79_62_72_63_65_64, length: 6) }
    static var expire: ShortWord { ShortWord(constant: 0x65_72_69_70_78_65, length: 6) }
    static var pexpire: ShortWord { ShortWord(constant: 0x65_72_69_70_78_65_70, length: 7) }
    static var nx: ShortWord { ShortWord(constant: 0x78_6E, length: 2) }
    static var xx: ShortWord { ShortWord(constant: 0x78_78, length: 2) }
    static var get: ShortWord { ShortWord(constant: 0x74_65_67, length: 3) }
    static var set: ShortWord { ShortWord(constant: 0x74_65_73, length: 3) }
    static var fetch: ShortWord { ShortWord(constant: 0x68_63_74_65_66, length: 5) }
    static var eval: ShortWord { ShortWord(constant: 0x6C_61_76_65, length: 4) }
    static var evalsha: ShortWord { ShortWord(constant: 0x61_68_73_6C_61_76_65, length: 7) }
    static var fcall: ShortWord { ShortWord(constant: 0x6C_6C_61_63_66, length: 5) }
    static var ping: ShortWord { ShortWord(constant: 0x67_6E_69_70, length: 4) }
    static var mget: ShortWord { ShortWord(constant: 0x74_65_67_6D, length: 4) }
    static var exists: ShortWord { ShortWord(constant: 0x73_74_73_69_78_65, length: 6) }
    static var ex: ShortWord { ShortWord(constant: 0x78_65, length: 2) }
    static var px: ShortWord { ShortWord(constant: 0x78_70, length: 2) }
}
