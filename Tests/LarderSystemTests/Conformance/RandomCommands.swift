import LarderTestSupport

/// Random commands to which both servers must reply alike, regardless of when each of them runs the commands.
///
/// Results that depend on the time of execution cannot be compared, so the commands avoid them. An entry's lifetime is
/// either over already or longer than any test run. No two lifetimes are so similar that their start times affect `GT`
/// and `LT`.
struct RandomCommands {
    private var generator: SeededGenerator
    private var lifetimes = 0

    init(seed: UInt64) { generator = SeededGenerator(seed: seed) }

    private static let words: [[String]] = [
        [
            "NX", "XX", "GET", "KEEPTTL", "EX", "PX", "EXAT", "PXAT", "GT", "LT", "nx", "BAD", "", "PERSIST", "REPLACE",
        ],
        [
            "100", "0", "-1", "abc", "9223372036854775807", "4102444800", "4102444800000", "1", "1.5",
            "99999999999999999999", "5", "-9223372036854775808", "0.1", "1e3",
        ],
        ["a", "b", "c", "nothing"],
    ]

    private static let commands = [
        "GET", "SET", "SET", "SET", "GETDEL", "MGET", "MSET", "DEL", "UNLINK", "EXISTS", "TYPE", "STRLEN", "EXPIRE",
        "EXPIRE", "PEXPIRE", "EXPIREAT", "PEXPIREAT", "PERSIST", "PERSIST", "ECHO", "PING", "CLIENT SETNAME",
        "CLIENT GETNAME", "@TTL", "@PTTL", "@EXPIRETIME", "@PEXPIRETIME", "~KEYS", "SETNX", "SETEX", "PSETEX", "GETSET",
        "GETEX", "GETEX", "MSETNX", "APPEND", "INCR", "DECR", "INCRBY", "DECRBY", "INCRBYFLOAT", "GETRANGE", "SUBSTR",
        "SETRANGE", "TOUCH", "RENAME", "RENAME", "RENAMENX", "COPY", "COPY", "DUMP",
        "MEMORY USAGE gone", "BITCOUNT", "GETBIT", "BITPOS",
    ]

    /// The commands with a lifetime, and the position of that word.
    private static let lifetimeWords = ["EXPIRE": 2, "PEXPIRE": 2, "SETEX": 2, "PSETEX": 2]

    mutating func next() -> ConformanceStep {
        if generator.oneIn(15) { return ConformanceStep(betweenDatabases()) }
        var words = pick(Self.commands).split(separator: " ").map(String.init)
        let count = Int.random(in: 0...6, using: &generator)
        for index in 0..<count {
            // Mostly use a key as the first word, then words that are valid for some command.
            let kind = index == 0 ? 2 : Int.random(in: 0...2, using: &generator)
            words.append(pick(Self.words[generator.oneIn(10) ? 0 : kind]))
        }
        for index in words.indices.dropFirst() where isLifetime(words, index) { words[index] = lifetime() }
        return ConformanceStep(words.map { $0.isEmpty ? "\"\"" : $0 }.joined(separator: " "))
    }

    /// Uses only the numbers of Redis' databases, because in Larder any word may be a database's name.
    private mutating func betweenDatabases() -> String {
        let (key, other, number) = (pick(Self.words[2]), pick(Self.words[2]), pick(["0", "1", "2", "15", "16", "-1"]))
        let copy = "COPY \(key) \(other) DB \(number)"
        return pick(["MOVE \(key) \(number)", copy, copy + " REPLACE", "SELECT \(number)", "SELECT 0"])
    }

    /// Whether a command may use a word as a relative lifetime.
    private func isLifetime(_ words: [String], _ index: Int) -> Bool {
        guard let number = Int64(words[index]), number > 0, number < .max else { return false }
        return Self.lifetimeWords[words[0]] == index || ["EX", "PX"].contains(words[index - 1])
    }

    /// Returns a lifetime of at least 1000 seconds, whether it is read as seconds or milliseconds. It is at least ten
    /// seconds longer than all previous lifetimes.
    private mutating func lifetime() -> String {
        lifetimes += 1
        return "\(1_000_000 + 10_000 * lifetimes)"
    }

    private mutating func pick<Element>(_ list: [Element]) -> Element {
        list[Int.random(in: 0..<list.count, using: &generator)]
    }
}

/// Random commands on bits and parts of values, most of them well-formed.
struct RandomBitCommands {
    private var generator: SeededGenerator

    init(seed: UInt64) { generator = SeededGenerator(seed: seed) }

    private mutating func pick<Element>(_ list: [Element]) -> Element {
        list[Int.random(in: 0..<list.count, using: &generator)]
    }

    private mutating func key() -> String { pick(["a", "b", "c", "d"]) }

    private mutating func offset() -> String {
        pick([
            "0", "1", "7", "8", "9", "63", "64", "#0", "#1", "#5", "-1",
            "\(Int.random(in: 0...300, using: &generator))",
        ])
    }

    private mutating func index() -> String {
        pick(["0", "1", "-1", "-2", "10", "-10", "100", "-100", "\(Int.random(in: -40...40, using: &generator))"])
    }

    private mutating func number() -> String {
        let some = Int64(truncatingIfNeeded: generator.next())
        return pick([
            "0", "1", "-1", "127", "128", "255", "256", "-128", "-129", "9223372036854775807", "-9223372036854775808",
            "\(some)", "\(some >> 40)",
        ])
    }

    private mutating func type() -> String {
        pick(["i", "u"]) + "\(pick([1, 2, 3, 5, 7, 8, 9, 16, 31, 32, 33, 62, 63, 64]))"
    }

    private mutating func range() -> String {
        pick(["", " \(index())", " \(index()) \(index())", " \(index()) \(index()) BIT", " \(index()) \(index()) BYTE"])
    }

    mutating func next() -> ConformanceStep {
        let key = key()
        switch Int.random(in: 0...11, using: &generator) {
        case 0: return ConformanceStep("SETBIT \(key) \(offset()) \(pick(["0", "1"]))")
        case 1: return ConformanceStep("GETBIT \(key) \(offset())")
        case 2: return ConformanceStep("BITCOUNT \(key)\(range())")
        case 3: return ConformanceStep("BITPOS \(key) \(pick(["0", "1"]))\(range())")
        case 4:
            let sources = (0..<Int.random(in: 1...3, using: &generator)).map { _ in self.key() }.joined(separator: " ")
            return ConformanceStep("BITOP \(pick(["AND", "OR", "XOR", "NOT"])) \(key) \(sources)")
        case 5, 6: return bitfield(key)
        case 7:
            let options = pick(["", " LEN", " IDX", " IDX WITHMATCHLEN", " IDX MINMATCHLEN 2"])
            return ConformanceStep("LCS \(key) \(self.key())\(options)")
        case 8: return ConformanceStep("SETRANGE \(key) \(Int.random(in: 0...50, using: &generator)) abc")
        case 9: return ConformanceStep("GETRANGE \(key) \(index()) \(index())")
        case 10:
            let letters = (0..<Int.random(in: 0...40, using: &generator)).map { _ in
                pick(["a", "b", "\\x00", "\\xff", "\\x\(pick(["0f", "f0", "81", "7e"]))"])
            }
            return ConformanceStep("SET \(key) \"\(letters.joined())\"")
        default: return ConformanceStep("GET \(key)")
        }
    }

    private mutating func bitfield(_ key: String) -> ConformanceStep {
        var line = "BITFIELD \(key)"
        for _ in 0..<Int.random(in: 0...4, using: &generator) {
            line += pick([
                " GET \(type()) \(offset())", " SET \(type()) \(offset()) \(number())",
                " INCRBY \(type()) \(offset()) \(number())", " OVERFLOW \(pick(["SAT", "WRAP", "FAIL"]))",
            ])
        }
        return ConformanceStep(line)
    }
}
