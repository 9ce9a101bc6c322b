import LarderEngine
import LarderJSONCoding
import LarderRESP

extension CallWords {
    /// Parses a path in RedisJSON's syntax. Without the word, the path is that of the whole document.
    func path(_ index: Int) throws(CommandError) -> JSONPath {
        guard index < count else { return .root }
        guard String(validating: bytes(index), as: UTF8.self) != nil else {
            throw CommandError("ERR invalid path '", shown(bytes(index), 128), "': expected UTF-8")
        }
        do throws(JSONPath.Defect) { return try JSONPath(bytes(index)) } catch {
            throw CommandError(
                "ERR invalid path '", shown(bytes(index), 128),
                "': expected \(error.expected) after \(error.offset) bytes")
        }
    }

    /// Parses a JSON value.
    func json(_ index: Int) throws(CommandError) -> JSONText {
        let text = bytes(index)
        do throws(JSONOutline.Defect) { return try JSONText(parsing: text) } catch {
            // The text of RedisJSON's error, which counts lines and columns from 1.
            let before = text.prefix(error.offset)
            let column = before.count - (before.lastIndex(of: 0x0A).map { $0 + 1 } ?? 0) + 1
            throw CommandError(
                "ERR expected value at line \(before.count { $0 == 0x0A } + 1) column \(column)")
        }
    }

    /// Parses all words from a position on as JSON values.
    func jsons(from first: Int) throws(CommandError) -> [JSONText] {
        try (first..<count).map { (index) throws(CommandError) in try json(index) }
    }
}

extension CommandError {
    static let notJSON = CommandError("WRONGTYPE Operation against a key holding the wrong kind of value")
    static let noDocument = CommandError("ERR could not perform this operation on a key that doesn't exist")
    static let noPath = CommandError("ERR Path does not exist")
    static let notAtRoot = CommandError("ERR new objects must be created at the root")

    static func noPath(orElse reason: String) -> CommandError { CommandError("ERR Path does not exist or \(reason)") }

    static func wrongKind(expected: String) -> CommandError {
        CommandError("WRONGTYPE wrong type of path value - expected \(expected)")
    }

    fileprivate static let tooManyVisits = CommandError(
        "ERR the path visits too many values; use fewer '..', '*', filters or lists of names")
}

extension JSONDocument {
    func values(_ path: JSONPath) throws(CommandError) -> [Int] {
        do throws(JSONPath.TooManyVisits) { return try path.find(in: self) } catch { throw .tooManyVisits }
    }

    /// Finds the values of a path, without those that are within others.
    func outermostValues(_ path: JSONPath) throws(CommandError) -> [Int] {
        do throws(JSONPath.TooManyVisits) { return try path.findOutermost(in: self) } catch { throw .tooManyVisits }
    }

    /// Calls `body` with the document that an entry contains. Throws ``CommandError/notJSON`` if it contains none.
    static func with<Result>(
        _ text: UnsafeRawBufferPointer, _ body: (borrowing JSONDocument) throws(CommandError) -> Result
    ) throws(CommandError) -> Result {
        guard let document = JSONDocument(text) else { throw .notJSON }
        return try body(document)
    }
}

extension RESPValue {
    static func bulk(_ text: String) -> RESPValue { .bulk(Array(text.utf8)) }

    static func integer(_ number: Int) -> RESPValue { .integer(Int64(number)) }

    /// A number of a JSON text.
    init(digits: [UInt8]) {
        let text = String(decoding: digits, as: UTF8.self)
        self = Int64(text).map { .integer($0) } ?? .double(Double(text) ?? .nan)
    }
}
