/// A type of script results: numbers, `Bool`, text, bytes, arrays and dictionaries of them, optionals of them, models
/// as ``ScriptModel``, and ``RESPValue`` for any reply.
///
/// The conversion of Lua's values:
///
/// | a script returns | in Swift it can be |
/// |---|---|
/// | a number, which the server truncates to an integer | a whole number, `Double`, `Bool` if it is 1 or 0 |
/// | a string | `String`, bytes, `Data`; a number if the string holds one |
/// | `true` | `Bool`, 1 |
/// | `false`, `nil`, the value of a missing entry | nil of an optional, or `Bool` |
/// | a table | an array, up to its first `nil` |
/// | the status of a command, such as `OK` | `String`; `Bool` for `OK` |
public protocol ScriptResult {
    /// Reads a reply that is not an error.
    init(scriptReply: RESPValue) throws(ScriptMismatch)
    /// Reads a reply as several values. The default implementation reads an array, and that of `UInt8` reads a string.
    static func scriptArray(_ reply: RESPValue) throws(ScriptMismatch) -> [Self]
}

/// An error for a script's reply of an unexpected kind.
public struct ScriptMismatch: Error, Sendable, CustomStringConvertible {
    /// A description of the expected and the actual kind of reply. It never contains the value.
    public let description: String

    /// - Parameters:
    ///   - expected: for example "a whole number".
    ///   - reply: the actual reply.
    public init(expected: String, _ reply: RESPValue) {
        description = "the script returned \(reply.kind), but \(expected) was expected"
    }

    init(_ description: String) { self.description = description }
}

extension ScriptResult {
    public static func scriptArray(_ reply: RESPValue) throws(ScriptMismatch) -> [Self] {
        guard let elements = reply.elements else { throw ScriptMismatch(expected: "an array", reply) }
        var values: [Self] = []
        values.reserveCapacity(elements.count)
        for (index, element) in elements.enumerated() {
            do throws(ScriptMismatch) {
                values.append(try Self(scriptReply: element))
            } catch {
                throw ScriptMismatch("element \(index + 1): \(error)")
            }
        }
        return values
    }
}

extension RESPValue: ScriptResult {
    public init(scriptReply reply: RESPValue) { self = reply }

    /// The kind of the reply, without its value.
    var kind: String {
        switch self {
        case .simpleString: "a status"
        case .error: "an error"
        case .integer: "a whole number"
        case .bulk(let bytes): "a string of \(bytes.count) bytes"
        case .verbatim(_, let text): "a string of \(text.count) bytes"
        case .null: "nothing (nil or false)"
        case .array(let elements), .set(let elements), .push(let elements): "an array of \(elements.count)"
        case .map(let pairs): "a map of \(pairs.count)"
        case .double: "a number"
        case .boolean: "a boolean"
        case .bigNumber: "a big number"
        }
    }
}

extension FixedWidthInteger where Self: ScriptResult {
    /// Reads an integer, or a string that holds one.
    public init(scriptReply reply: RESPValue) throws(ScriptMismatch) {
        guard let number = reply.int, let value = Self(exactly: number) else {
            throw ScriptMismatch(
                expected: reply.int == nil ? "a whole number" : "one between \(Self.min) and \(Self.max)", reply)
        }
        self = value
    }
}

extension Int: ScriptResult {}
extension Int32: ScriptResult {}
extension Int64: ScriptResult {}
extension UInt: ScriptResult {}
extension UInt32: ScriptResult {}
extension UInt64: ScriptResult {}

extension UInt8: ScriptResult {
    /// Reads the bytes of a string.
    public static func scriptArray(_ reply: RESPValue) throws(ScriptMismatch) -> [UInt8] {
        guard let bytes = reply.bytes else { throw ScriptMismatch(expected: "a string", reply) }
        return bytes
    }
}

extension Double: ScriptResult {
    /// Reads a number, or a string that holds one.
    public init(scriptReply reply: RESPValue) throws(ScriptMismatch) {
        guard let number = reply.double else { throw ScriptMismatch(expected: "a number", reply) }
        self = number
    }
}

extension Bool: ScriptResult {
    /// Reads 1, `true` and the status `OK` as true; 0, `false` and `nil` as false.
    public init(scriptReply reply: RESPValue) throws(ScriptMismatch) {
        switch reply {
        case .null: self = false
        case .simpleString("OK"): self = true
        default:
            guard let value = reply.bool else { throw ScriptMismatch(expected: "1, 0, true, false or OK", reply) }
            self = value
        }
    }
}

extension String: ScriptResult {
    /// Reads a string in UTF-8.
    public init(scriptReply reply: RESPValue) throws(ScriptMismatch) {
        guard let text = reply.string else {
            throw ScriptMismatch(expected: reply.bytes == nil ? "a string" : "one in UTF-8", reply)
        }
        self = text
    }
}

extension Array: ScriptResult where Element: ScriptResult {
    /// Reads an array; for bytes, a string.
    public init(scriptReply reply: RESPValue) throws(ScriptMismatch) { self = try Element.scriptArray(reply) }
}

extension Dictionary: ScriptResult where Key == String, Value: ScriptResult {
    /// Reads a map, or an array of alternating names and values. Of equal names the last one wins.
    public init(scriptReply reply: RESPValue) throws(ScriptMismatch) {
        guard let pairs = reply.pairs else { throw ScriptMismatch(expected: "a map", reply) }
        self.init(minimumCapacity: pairs.count)
        for pair in pairs { self[try String(scriptReply: pair.key)] = try Value(scriptReply: pair.value) }
    }
}

extension Optional: ScriptResult where Wrapped: ScriptResult {
    /// Reads `nil` and `false` as nil.
    public init(scriptReply reply: RESPValue) throws(ScriptMismatch) {
        self = reply.isNull ? nil : try Wrapped(scriptReply: reply)
    }
}
