import LarderTestSupport

/// Random requests of every group of commands, most of them well-formed. Their replies do not depend on a clock:
/// deadlines are far in the future, or have passed when they are set. So transactions of these requests can be compared
/// directly, and so can the messages that other clients get about them.
struct RandomRequests {
    private var generator: SeededGenerator
    /// Whether other connections observe the writes. If so, the requests avoid commands that Redis reports differently,
    /// commands that end the transaction, and commands that select another database unnoticed.
    private let areObserved: Bool

    init(seed: UInt64, areObserved: Bool = false) {
        generator = SeededGenerator(seed: seed)
        self.areObserved = areObserved
    }

    // MARK: Words

    private mutating func pick(_ words: String...) -> String {
        words[Int.random(in: 0..<words.count, using: &generator)]
    }
    private mutating func number(in range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &generator) }

    mutating func key() -> String { pick("a", "b", "c", "x:1", "x:2", "n", "\"\"") }

    private mutating func keys(_ range: ClosedRange<Int>) -> String {
        (0..<number(in: range)).map { _ in key() }.joined(separator: " ")
    }

    private mutating func value() -> String {
        pick(
            "v", "\"\"", "1", "10", "-7", "3.14", "hello", "ohmytext", "mynewtext", "9223372036854775807",
            "\"\\x00\\xff\"")
    }

    private mutating func integer() -> String {
        pick(
            "0", "1", "-1", "2", "5", "-10", "100", "9223372036854775807", "-9223372036854775808", "abc", "1.5", "+1",
            "01")
    }

    private mutating func place() -> String { pick("0", "1", "-1", "2", "-3", "7", "10", "-100", "100", "x") }

    private mutating func option(_ text: String, _ share: Int = 4) -> String {
        generator.oneIn(share) ? " " + text : ""
    }

    private mutating func seconds() -> String { "\(4_102_444_800 + 100_000 * number(in: 0...9))" }

    private mutating func lifetime() -> String {
        switch number(in: 0...9) {
        case 0...2: " EXAT \(seconds())"
        case 3...5: " PXAT \(seconds())123"
        case 6: " KEEPTTL"
        case 7: " PERSIST"
        case 8: pick(" EX 0", " PX -1", " EX abc", " EX", " EXAT", " PXAT 1.5")
        default: " EXAT \(seconds()) PXAT \(seconds())000"
        }
    }

    private mutating func database() -> String { pick("0", "1", "2", "15", "16", "-1") }

    private mutating func bits() -> String { pick("0", "1", "7", "8", "63", "100", "-1", "4294967296", "#1") }

    private mutating func field() -> String { pick("i", "u") + pick("1", "4", "8", "13", "32", "63", "64") }

    private mutating func operation() -> String {
        switch number(in: 0...3) {
        case 0: " GET \(field()) \(bits())"
        case 1: " SET \(field()) \(bits()) \(integer())"
        case 2: " INCRBY \(field()) \(bits()) \(integer())"
        // Not FAIL: Redis sends no event for a value that the command only extends, and does not tell WATCH of it.
        default: " OVERFLOW \(pick("WRAP", "SAT", "BAD"))"
        }
    }

    // MARK: Requests

    /// Returns a random command in the form of a ``ConformanceStep``.
    mutating func next() -> String {
        let line =
            switch number(in: 0...11) {
            case 0...2: storing()
            case 3: reading()
            case 4: numbers()
            case 5: bitCommands()
            case 6: expiry()
            case 7, 8: keyspace()
            case 9, 10: transaction()
            default: areObserved ? storing() : connection()
            }
        switch number(in: 0...29) {
        // One word too many or too few.
        case 0: return line + " " + pick("x", "NX", "\"\"")
        case 1: return line.split(separator: " ").dropLast().joined(separator: " ") + (line.contains(" ") ? "" : line)
        case 2: return line.lowercased()
        default: return line
        }
    }

    private mutating func storing() -> String {
        switch number(in: 0...11) {
        case 0...3:
            "SET \(key()) \(value())" + option("NX", 6) + (generator.oneIn(2) ? lifetime() : "") + option("XX", 6)
                + option("GET")
        case 4: "SETNX \(key()) \(value())"
        case 5: "GETSET \(key()) \(value())"
        case 6: "MSET \(key()) \(value()) \(key()) \(value())"
        case 7: "MSETNX \(key()) \(value()) \(key()) \(value())"
        case 8: "APPEND \(key()) \(value())"
        case 9: "SETRANGE \(key()) \(place()) \(value())"
        case 10: "GETDEL \(key())"
        default: "GETEX \(key())" + lifetime()
        }
    }

    private mutating func reading() -> String {
        switch number(in: 0...8) {
        case 0: "GET \(key())"
        case 1: "MGET \(keys(1...4))"
        case 2: "STRLEN \(key())"
        case 3: "GETRANGE \(key()) \(place()) \(place())"
        case 4: "SUBSTR \(key()) \(place()) \(place())"
        case 5: "EXISTS \(keys(1...3))"
        case 6: "TYPE \(key())"
        case 7: "DUMP \(key())"
        default:
            "LCS \(key()) \(key())" + option("LEN", 3) + option("IDX", 3) + option("MINMATCHLEN \(place())")
                + option("WITHMATCHLEN")
        }
    }

    private mutating func numbers() -> String {
        switch number(in: 0...4) {
        case 0: "INCR \(key())"
        case 1: "DECR \(key())"
        case 2: "INCRBY \(key()) \(integer())"
        case 3: "DECRBY \(key()) \(integer())"
        default: "INCRBYFLOAT \(key()) \(pick("1", "0.1", "-1.5e3", "1e17", "inf", "nan", "abc", "3.0", "1e-20"))"
        }
    }

    private mutating func bitCommands() -> String {
        switch number(in: 0...6) {
        case 0: "SETBIT \(key()) \(bits()) \(pick("0", "1", "2"))"
        case 1: "GETBIT \(key()) \(bits())"
        case 2: "BITCOUNT \(key())" + option("\(place()) \(place())", 2) + option(pick("BIT", "BYTE", "BAD"))
        case 3: "BITPOS \(key()) \(pick("0", "1", "2"))" + option("\(place()) \(place())", 2) + option("BIT")
        case 4: "BITOP \(pick("AND", "OR", "XOR", "NOT")) \(keys(2...4))"
        case 5: "BITFIELD_RO \(key())" + operation()
        default: "BITFIELD \(key())" + operation() + operation() + operation()
        }
    }

    private mutating func expiry() -> String {
        let condition = option(pick("NX", "XX", "GT", "LT"), 2) + option(pick("NX", "XX", "GT", "LT"), 6)
        return switch number(in: 0...6) {
        case 0: "EXPIREAT \(key()) \(seconds())" + condition
        case 1: "PEXPIREAT \(key()) \(seconds())007" + condition
        case 2: "EXPIRE \(key()) \(pick("0", "-1", "abc", "9223372036854775807"))" + condition
        case 3: "PEXPIREAT \(key()) \(pick("1", "-1", "-9223372036854775808"))" + condition
        case 4: "PERSIST \(key())"
        case 5: "EXPIRETIME \(key())"
        default: "PEXPIRETIME \(key())"
        }
    }

    private mutating func keyspace() -> String {
        switch number(in: 0...10) {
        case 0: "DEL \(keys(1...3))"
        case 1: "UNLINK \(keys(1...3))"
        case 2: "TOUCH \(keys(1...3))"
        case 3: "RENAME \(key()) \(key())"
        case 4: "RENAMENX \(key()) \(key())"
        case 5, 6: "COPY \(key()) \(key())" + option("DB \(database())", 2) + option("REPLACE", 2)
        case 7: "MOVE \(key()) \(database())"
        case 8:
            "RESTORE \(key()) \(pick("0", "-1", "abc", "\(seconds())000 ABSTTL")) "
                + pick("bad", #""\x00\x05\x68\x65\x6c\x6c\x6f\x0a\x00\x63\x72\xdf\x76\x65\x34\x20\x0a""#)
                + option("REPLACE", 2)
        case 9: areObserved ? "EXISTS \(key())" : "DBSIZE"
        default: generator.oneIn(3) ? pick("FLUSHDB", "FLUSHALL", "FLUSHDB BAD") : "SELECT \(database())"
        }
    }

    private mutating func transaction() -> String {
        pick("MULTI", "MULTI", "EXEC", "EXEC", "WATCH \(keys(1...2))", "UNWATCH", "DISCARD", "NOSUCH a")
    }

    private mutating func connection() -> String {
        switch number(in: 0...5) {
        case 0: "CLIENT SETNAME \(pick("x", "\"\"", "\"a b\""))"
        case 1: "CLIENT GETNAME"
        case 2: "COMMAND GETKEYS \(reading())"
        case 3: "COMMAND GETKEYSANDFLAGS \(pick(storing(), bitCommands(), keyspace()))"
        case 4: "SWAPDB \(pick("0", "1")) \(database())"
        default: "ECHO x"
        }
    }
}
