import LarderCommandCatalog
import LarderEngine
import LarderRESP

extension CommandTable {
    static let bitFieldPlanners: Planners = [
        .bitfield: { words throws(CommandError) in try BitFieldCommands.bitfield(words, mayWrite: true) },
        .bitfieldReadonly: { words throws(CommandError) in try BitFieldCommands.bitfield(words, mayWrite: false) },
    ]
}

enum BitFieldCommands {
    private struct Operation {
        enum Kind {
            case get
            case set(Int64)
            case add(Int64)
        }

        let kind: Kind
        let field: BitField
        let overflow: BitField.Overflow

        var writes: Bool { if case .get = kind { false } else { true } }

        /// Computes the operation without changing the value.
        /// - Returns: the number for the reply (nil for a null), and the number to write into the field (nil for none).
        func run(on bytes: UnsafeRawBufferPointer) -> (reply: Int64?, written: Int64?) {
            let previous = field.read(bytes)
            switch kind {
            case .get: return (previous, nil)
            case .set(let number):
                guard let fitting = field.sum(number, 0, overflow) else { return (nil, nil) }
                return (previous, fitting)
            case .add(let amount):
                let sum = field.sum(previous, amount, overflow)
                return (sum, sum)
            }
        }
    }

    static func bitfield(_ words: CallWords, mayWrite: Bool) throws(CommandError) -> EntryPlan {
        let operations = try operations(words)
        guard let bytesNeeded = operations.filter(\.writes).map(\.field.bytesNeeded).max() else {
            return .read(1) { payload, replies in
                let numbers = payload.map { payload in operations.map { $0.run(on: payload).reply } }
                replies.reply(.integers(numbers ?? operations.map { _ in 0 }))
            }
        }
        guard mayWrite else { throw CommandError("ERR BITFIELD_RO only supports the GET subcommand") }
        // As in Redis, a value that is too short for a field is extended, even if no operation writes.
        return try .change(words, builtBytes: bytesNeeded) { (update, context) throws(CommandError) in
            let record = update.current(0)
            let count = max(record?.payloadCount ?? 0, bytesNeeded)
            if let record, record.payloadCount == count {
                var unchanged: [Int64?]?
                record.withPayload { unchanged = runUnchanging(operations, on: $0) }
                if let unchanged { return .integers(unchanged) }
            }
            try context.admit(count, update)
            var numbers: [Int64?] = []
            update.change(0, count: count) { payload in
                numbers = operations.map { operation in
                    let (reply, written) = operation.run(on: UnsafeRawBufferPointer(payload))
                    if let written { operation.field.write(written, to: payload) }
                    return reply
                }
            }
            return .integers(numbers)
        }
    }

    /// Runs the operations if none of them changes a bit. As in Redis, nothing is stored then.
    /// - Returns: the numbers for the reply; nil if an operation would change a bit.
    private static func runUnchanging(_ operations: [Operation], on bytes: UnsafeRawBufferPointer) -> [Int64?]? {
        var numbers: [Int64?] = []
        for operation in operations {
            let (reply, written) = operation.run(on: bytes)
            if let written, written != operation.field.read(bytes) { return nil }
            numbers.append(reply)
        }
        return numbers
    }

    // MARK: Words

    private static func operations(_ words: CallWords) throws(CommandError) -> [Operation] {
        var operations: [Operation] = []
        var overflow = BitField.Overflow.wrap
        var index = 2
        while index < words.count {
            let behind = words.count - index - 1
            if words.isWord(index, "OVERFLOW"), behind >= 1 {
                overflow = try Self.overflow(words, index + 1)
                index += 2
                continue
            }
            let isGet = words.isWord(index, "GET") && behind >= 2
            let isSet = words.isWord(index, "SET") && behind >= 3
            guard isGet || isSet || words.isWord(index, "INCRBY") && behind >= 3 else { throw .syntax }
            let field = try field(words, index + 1)
            if isGet {
                operations.append(Operation(kind: .get, field: field, overflow: overflow))
                index += 3
            } else {
                let number = try words.integer(index + 3)
                // Apply Larder's limit for the length of values. Redis accepts fields that end a few bytes later.
                guard field.bytesNeeded <= words.valueBytesMax else { throw BitCommands.badOffset }
                operations.append(
                    Operation(kind: isSet ? .set(number) : .add(number), field: field, overflow: overflow))
                index += 4
            }
        }
        return operations
    }

    private static func overflow(_ words: CallWords, _ index: Int) throws(CommandError) -> BitField.Overflow {
        if words.isWord(index, "WRAP") { return .wrap }
        if words.isWord(index, "SAT") { return .saturate }
        if words.isWord(index, "FAIL") { return .fail }
        throw CommandError("ERR Invalid OVERFLOW type specified")
    }

    /// Parses the type of a field, such as `i8` or `u63`, and the offset that follows.
    private static func field(_ words: CallWords, _ index: Int) throws(CommandError) -> BitField {
        let type = words.bytes(index)
        let isSigned = type.first == UInt8(ascii: "i")
        guard isSigned || type.first == UInt8(ascii: "u"),
            let width = parseInteger(UnsafeRawBufferPointer(rebasing: type.dropFirst())),
            (1...(isSigned ? 64 : 63)).contains(width)
        else {
            throw CommandError(
                "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.")
        }
        let offset = try BitCommands.offset(words, index + 1, width: Int(width))
        return BitField(isSigned: isSigned, width: Int(width), offset: offset)
    }
}
