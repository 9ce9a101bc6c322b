import LarderCommandCatalog
import LarderRESP

extension CommandTable {
    static let absentTypeCommands: Handlers = CommandMetadata.all.reduce(into: [:]) { handlers, row in
        if let absent = row.absent { handlers[row] = AbsentTypeCommands.handler(row, absent) }
    }
}

/// Commands that only read or remove values of types that Larder does not store, such as lists. For missing keys, they
/// return Redis' reply. For a key with an entry, which is always a string, they return an error.
enum AbsentTypeCommands {
    static func handler(_ row: CommandMetadata, _ absent: AbsentReply) -> CommandSpec.Handler {
        // Of the commands that write, only XACK counts its lookup as a read in Redis.
        let counts = !row.flags.contains(.write) || row.name == "xack"
        return { call throws(CommandError) in
            try check(call, absent.check)
            for index in try keys(call, row) {
                if try (counts ? call.facts(index) : call.uncountedFacts(index)) != nil { throw wrongType }
            }
            write(absent.form, call)
            return .done
        }
    }

    private static let wrongType = CommandError(
        "WRONGTYPE Operation against a key holding the wrong kind of value")

    private static func check(_ call: Call, _ check: AbsentReply.Check) throws(CommandError) {
        switch check {
        case .integers(let words): for index in words { _ = try call.integer(index) }
        case .scores: for index in 2...3 { try checkScore(call.bytes(index)) }
        case .members: for index in 2...3 { try checkMember(call.bytes(index)) }
        case .ranks:
            let options = 4..<max(4, call.count)
            let actual: AbsentReply.Check =
                if options.contains(where: { call.isWord($0, "BYSCORE") }) {
                    .scores
                } else if options.contains(where: { call.isWord($0, "BYLEX") }) {
                    .members
                } else {
                    .integers(2...3)
                }
            try self.check(call, actual)
        case .cursor: guard KeyCommands.parseCursor(call.bytes(2)) != nil else { throw KeyCommands.invalidCursor }
        case .count where call.count > 2: _ = try call.integer(2)
        case .positiveCount where call.count > 2:
            guard let count = parseInteger(call.bytes(2)), count >= 0 else {
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

    private static func keys(_ call: Call, _ row: CommandMetadata) throws(CommandError) -> [Int] {
        let keys = row.keyIndices(count: call.count) { call.bytes($0) }
        guard row.keys.countAt > 0 else { return keys }
        guard let count = parseInteger(call.bytes(row.keys.countAt)), count > 0 else {
            throw CommandError("ERR numkeys should be greater than 0")
        }
        guard keys.count == count else { throw .syntax }
        return keys
    }

    private static func write(_ form: AbsentReply.Form, _ call: Call) {
        let replies = call.session.replyMemory
        switch form {
        case .zero: replies.pointee.integer(0)
        case .null: replies.pointee.null()
        case .nullArray: replies.pointee.nullArray()
        case .emptyArray: replies.pointee.array(count: 0)
        case .emptySet: replies.pointee.set(count: 0)
        case .emptyMap: replies.pointee.map(count: 0)
        case .ok: replies.pointee.simple("OK")
        case .emptyScan:
            replies.pointee.array(count: 2)
            replies.pointee.bulk("0")
            replies.pointee.array(count: 0)
        case .each(let form, let first):
            replies.pointee.array(count: call.count - first)
            for _ in first..<call.count { write(form, call) }
        case .counted(let form, let counted): write(call.count > 2 ? counted : form, call)
        case .withCOUNT(let form, let counted):
            write((3..<call.count).contains { call.isWord($0, "COUNT") } ? counted : form, call)
        }
    }
}
