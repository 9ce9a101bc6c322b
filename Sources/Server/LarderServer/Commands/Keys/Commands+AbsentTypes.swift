import LarderCommandCatalog
import LarderRESP

/// Commands that only read or remove values of types that Larder does not store, such as lists. For a missing key, they
/// reply like Redis. For a key with an entry, which is always a string, they reply with an error.
extension CommandTable {
    static let absentTypePlanners: Planners = CommandMetadata.all.reduce(into: [:]) { planners, row in
        if let absent = row.absent { planners[row] = planner(row, absent) }
    }

    private static func planner(_ row: CommandMetadata, _ absent: AbsentReply) -> EntryPlan.Planner {
        // As in Redis, lookups count as hits or misses only for commands that read, and for XACK.
        let counts = !row.flags.contains(.write) || row.name == "xack"
        return { words throws(CommandError) in
            try check(words, absent.check)
            return .noEntries(try keys(words, row), isCounted: counts, failure: wrongType) { replies in
                write(absent.form, words, to: &replies)
            }
        }
    }

    private static let wrongType = CommandError(
        "WRONGTYPE Operation against a key holding the wrong kind of value")

    private static func check(_ words: CallWords, _ check: AbsentReply.Check) throws(CommandError) {
        switch check {
        case .integers(let indices): for index in indices { _ = try words.integer(index) }
        case .scores: for index in 2...3 { try checkScore(words.bytes(index)) }
        case .members: for index in 2...3 { try checkMember(words.bytes(index)) }
        case .ranks:
            let options = 4..<max(4, words.count)
            let actual: AbsentReply.Check =
                if options.contains(where: { words.isWord($0, "BYSCORE") }) {
                    .scores
                } else if options.contains(where: { words.isWord($0, "BYLEX") }) {
                    .members
                } else {
                    .integers(2...3)
                }
            try self.check(words, actual)
        case .cursor: guard parseCursor(words.bytes(2)) != nil else { throw invalidCursor }
        case .count where words.count > 2: _ = try words.integer(2)
        case .positiveCount where words.count > 2:
            guard let count = parseInteger(words.bytes(2)), count >= 0 else {
                throw CommandError("ERR value is out of range, must be positive")
            }
        case .nothing, .count, .positiveCount: break
        }
    }

    private static func checkScore(_ word: UnsafeRawBufferPointer) throws(CommandError) {
        let isOpen = word.first == UInt8(ascii: "(")
        let number = String(decoding: word.dropFirst(isOpen ? 1 : 0), as: UTF8.self)
        guard number.isEmpty || Double(number).map({ !$0.isNaN }) == true else {
            throw CommandError("ERR min or max is not a float")
        }
    }

    private static func checkMember(_ word: UnsafeRawBufferPointer) throws(CommandError) {
        let isEnd = word.count == 1 && (word[0] == UInt8(ascii: "-") || word[0] == UInt8(ascii: "+"))
        guard isEnd || word.first == UInt8(ascii: "(") || word.first == UInt8(ascii: "[") else {
            throw CommandError("ERR min or max not valid string range item")
        }
    }

    private static func keys(_ words: CallWords, _ row: CommandMetadata) throws(CommandError) -> [Int] {
        let keys = row.keyIndices(count: words.count) { words.bytes($0) }
        guard row.keys.countAt > 0 else { return keys }
        guard let count = parseInteger(words.bytes(row.keys.countAt)), count > 0 else {
            throw CommandError("ERR numkeys should be greater than 0")
        }
        guard keys.count == count else { throw .syntax }
        return keys
    }

    private static func write(_ form: AbsentReply.Form, _ words: CallWords, to replies: inout ReplyBuffer) {
        switch form {
        case .zero: replies.integer(0)
        case .null: replies.null()
        case .nullArray: replies.nullArray()
        case .emptyArray: replies.array(count: 0)
        case .emptySet: replies.set(count: 0)
        case .emptyMap: replies.map(count: 0)
        case .ok: replies.simple("OK")
        case .emptyScan:
            replies.array(count: 2)
            replies.bulk("0")
            replies.array(count: 0)
        case .each(let form, let first):
            replies.array(count: words.count - first)
            for _ in first..<words.count { write(form, words, to: &replies) }
        case .counted(let form, let counted): write(words.count > 2 ? counted : form, words, to: &replies)
        case .withCOUNT(let form, let counted):
            write((3..<words.count).contains { words.isWord($0, "COUNT") } ? counted : form, words, to: &replies)
        }
    }

    // MARK: Other commands

    /// Returns the type of values of a Redis command that Larder does not have, because its values are not strings. The
    /// error for such a command names the type.
    /// - Returns: nil for a command that is not in this list.
    static func absentType(of name: String) -> String? { subjects[name.lowercased()] }

    private static let subjects: [String: String] = {
        let names = [
            "lists": """
            blmove blmpop blpop brpop brpoplpush linsert lmove lpush lpushx lset rpoplpush rpush rpushx
            """,
            "hashes": """
            hincrby hincrbyfloat hmset hset hsetnx hexpire hpexpire hexpireat hpexpireat httl hpttl hpersist hgetdel \
            hgetex hsetex
            """,
            "sets": "sadd sdiffstore sinterstore smove sunionstore",
            "sorted sets": """
            bzmpop bzpopmax bzpopmin zadd zdiffstore zincrby zinterstore zrangestore zunionstore
            """,
            "streams": "xadd xautoclaim xclaim xgroup xinfo xpending xread xreadgroup xsetid",
            "places": "geoadd georadius georadiusbymember geosearchstore",
            "counting sketches": "pfadd pfcount pfdebug pfmerge pfselftest",
            "lists and sets": "sort sort_ro",
        ]
        var subjects: [String: String] = [:]
        for (subject, list) in names {
            for name in list.split(separator: " ") { subjects[String(name)] = subject }
        }
        return subjects
    }()
}
