import LarderRESP

/// The names of the commands and options in ``QuickCommands`` as integers, which can be compared quickly.
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
}
