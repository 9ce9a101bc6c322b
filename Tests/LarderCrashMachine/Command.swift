import LarderTestSupport

/// A command that changes keys of one connection.
struct Command {
    enum Lifetime {
        case governed
        case keep
        /// Until a time of the wall clock. The larder's time may be ahead of that clock by `lead` milliseconds.
        case until(Int64, lead: Int64)
        case milliseconds(Int64)
    }

    enum Action {
        case set(String, [UInt8], Lifetime)
        case setTagged(String, [UInt8], [String])
        case setIfAbsent(String, [UInt8])
        case setMany([(String, [UInt8])])
        case append(String, [UInt8])
        case setRange(String, Int, [UInt8])
        case increment(String, Int)
        case delete([String])
        case expire(String, Int64)
        case persist(String)
        case copy(String, String, database: String)
        case rename(String, String)
        case move(String, database: String)
    }

    let database: String
    let action: Action

    var words: [[UInt8]] {
        switch action {
        case .set(let key, let value, let lifetime): Self.words("SET", key) + [value] + Self.words(lifetime)
        case .setTagged(let key, let value, let tags):
            Self.words("SET", key) + [value] + Self.words("TAGS", "\(tags.count)") + tags.map { Array($0.utf8) }
        case .setIfAbsent(let key, let value): Self.words("SETNX", key) + [value]
        case .setMany(let pairs): Self.words("MSET") + pairs.flatMap { [Array($0.0.utf8), $0.1] }
        case .append(let key, let value): Self.words("APPEND", key) + [value]
        case .setRange(let key, let offset, let value): Self.words("SETRANGE", key, "\(offset)") + [value]
        case .increment(let key, let number): Self.words("INCRBY", key, "\(number)")
        case .delete(let keys): Self.words("DEL") + keys.map { Array($0.utf8) }
        case .expire(let key, let milliseconds): Self.words("PEXPIRE", key, "\(milliseconds)")
        case .persist(let key): Self.words("PERSIST", key)
        case .copy(let key, let other, let database): Self.words("COPY", key, other, "DB", database, "REPLACE")
        case .rename(let key, let other): Self.words("RENAME", key, other)
        case .move(let key, let database): Self.words("MOVE", key, database)
        }
    }

    private static func words(_ texts: String...) -> [[UInt8]] { texts.map { Array($0.utf8) } }

    private static func words(_ lifetime: Lifetime) -> [[UInt8]] {
        switch lifetime {
        case .governed: []
        case .keep: words("KEEPTTL")
        case .until(let instant, _): words("PXAT", "\(instant)")
        case .milliseconds(let span): words("PX", "\(span)")
        }
    }

    /// A description for messages.
    var text: String {
        "\(database): "
            + words.map { String(decoding: $0.prefix(24), as: UTF8.self) + ($0.count > 24 ? "…(\($0.count))" : "") }
            .joined(separator: " ")
    }
}

/// Generates random commands.
struct CommandDice {
    /// COPY, MOVE and SWAPDB accept numbered databases only; other databases can only be selected.
    static let databases = ["0", "1", "books"]
    /// Databases with unreachable origins and without entries.
    static let cachingDatabases = ["cache", "mirror"]

    var random: SeededGenerator
    /// How far the larder's time may be ahead of the clock that absolute deadlines use, in milliseconds.
    var lead: Int64 = 0
    private var counter = 0

    init(_ random: SeededGenerator) { self.random = random }

    mutating func database() -> String { Self.databases.randomElement(using: &random) ?? "0" }

    /// Returns a command on keys with this prefix, in a database other than `shunned`.
    mutating func command(_ prefix: String, shunning shunned: String?, now: Int64) -> Command {
        var database = database()
        while database == shunned { database = self.database() }
        var other = ["0", "1"].randomElement(using: &random) ?? "0"
        if other == shunned { other = other == "0" ? "1" : "0" }
        return Command(database: database, action: action(prefix, database, other, now))
    }

    private mutating func action(_ prefix: String, _ database: String, _ other: String, _ now: Int64) -> Command.Action
    {
        let key = key(prefix)
        switch Int.random(in: 0..<100, using: &random) {
        case 0..<18: return .set(key, value(), random.oneIn(8) ? .keep : .governed)
        case 18..<30: return .setTagged(key, value(), tags())
        case 30..<36:
            return .set(key, value(), .milliseconds(Int64.random(in: 90_000_000...900_000_000, using: &random)))
        case 36..<42:
            return .set(shortKey(prefix), value(), .until(now + Int64.random(in: 1...4000, using: &random), lead: lead))
        case 42..<45: return .set(shortKey(prefix), value(), .milliseconds(Int64.random(in: 1...4000, using: &random)))
        case 45..<48: return .setIfAbsent(key, value())
        case 48..<56:
            return .setMany((0..<Int.random(in: 2...5, using: &random)).map { _ in (self.key(prefix), value()) })
        case 56..<62: return .append(key, value())
        case 62..<66: return .setRange(key, Int.random(in: 0...80, using: &random), value())
        case 66..<74: return .increment(numberKey(prefix), Int.random(in: 1...99, using: &random))
        case 74..<84: return .delete(random.oneIn(2) ? [key] : [key, self.key(prefix), shortKey(prefix)])
        case 84..<87: return .expire(key, Int64.random(in: 90_000_000...900_000_000, using: &random))
        case 87..<89: return .persist(key)
        case 89..<93:
            let target = self.key(prefix)
            return database == other && key == target ? .persist(key) : .copy(key, target, database: other)
        case 93..<97: return .rename(key, self.key(prefix))
        default:
            if database == other { return .set(key, value(), .governed) }
            return .move(key, database: other)
        }
    }

    mutating func longCommand(_ prefix: String) -> Command {
        counter += 1
        let count = Int.random(in: (4 << 20)...(5 << 20), using: &random)
        let value =
            Array("\(counter):".utf8) + [UInt8](repeating: UInt8.random(in: 97...122, using: &random), count: count)
        return Command(database: database(), action: .set(key(prefix), value, .governed))
    }

    private mutating func key(_ prefix: String) -> String { "\(prefix):\(Int.random(in: 0..<10, using: &random))" }
    private mutating func shortKey(_ prefix: String) -> String { "\(prefix):t\(Int.random(in: 0..<3, using: &random))" }
    private mutating func numberKey(_ prefix: String) -> String {
        "\(prefix):n\(Int.random(in: 0..<3, using: &random))"
    }

    /// Returns a command that changes the function libraries.
    /// - Parameter now: the existing libraries.
    mutating func functions(_ now: String) -> (words: [String], then: String) {
        let present = now.split(separator: " ").map(String.init)
        counter += 1
        let name = "lib\(Int.random(in: 0..<3, using: &random))"
        let others = present.filter { !$0.hasPrefix(name + ":") }
        switch Int.random(in: 0..<6, using: &random) {
        case 0: return (["FUNCTION", "FLUSH"], Fact.none)
        case 1 where others.count < present.count: return (["FUNCTION", "DELETE", name], others.joined(separator: " "))
        default:
            let version = FunctionVersion(name, counter)
            let then = (others + [version.description]).sorted().joined(separator: " ")
            return (["FUNCTION", "LOAD", "REPLACE", version.text], then)
        }
    }

    /// Returns a command that changes the origin of a database.
    mutating func origin() -> (words: [String], then: String) {
        if random.oneIn(4) { return (["ORIGIN", "NONE"], Fact.none) }
        counter += 1
        let writing = random.oneIn(2) ? "AROUND" : "THROUGH"
        let words = ["redis://127.0.0.1:1/\(counter)", writing] + (random.oneIn(2) ? ["STALE"] : [])
        return (["ORIGIN"] + words, words.joined(separator: " "))
    }

    mutating func tag() -> String { "tag:\(Int.random(in: 0..<3, using: &random))" }
    private mutating func tags() -> [String] {
        let (one, other) = (tag(), tag())
        return random.oneIn(3) && one != other ? [one, other] : [one]
    }

    /// Returns a unique value, which identifies the write that stores it.
    mutating func value() -> [UInt8] {
        counter += 1
        let lengths = [0, 0, 10, 30, 100, 100, 700, 5000]
        let count = lengths.randomElement(using: &random) ?? 0
        // Half of the values cannot be compressed.
        return Array("\(counter):".utf8)
            + (random.oneIn(2) ? random.bytes(count: count) : Array(repeating: 120, count: count))
    }
}
