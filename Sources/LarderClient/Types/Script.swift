import LarderModelCoding

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A script in Lua 5.1, which larderd runs in isolation on the entries of its keys.
///
/// ```swift
/// let takeAway = Script("if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0")
/// let wasRemoved: Bool = try await client.script(takeAway, keys: ["owner"], arguments: ["ana"])
/// ```
/// If the script only reads, begin its text with `#!lua flags=no-writes`. A value type.
public struct Script: Sendable, Hashable, ExpressibleByStringLiteral {
    /// The text of the script.
    public let text: String

    /// Creates a script. The server checks its syntax.
    public init(_ text: String) { self.text = text }

    /// Creates a script from a string literal.
    public init(stringLiteral text: String) { self.init(text) }

    /// Compares the bytes: texts with different bytes are different scripts, even if Swift considers the strings equal.
    public static func == (left: Script, right: Script) -> Bool { left.text.utf8.elementsEqual(right.text.utf8) }

    public func hash(into hasher: inout Hasher) {
        var text = text
        text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    }
}

/// A type of script arguments (`ARGV`): text, bytes, numbers, `Bool`, `UUID`, and models as ``ScriptModel``.
///
/// A script receives each argument as a string: a number as its decimal digits, `true` and `false` as `1` and `0`.
public protocol ScriptArgument {
    /// The bytes of the argument.
    /// - Throws: if the value has no bytes, such as a model that cannot be encoded.
    var scriptBytes: [UInt8] { get throws }
}

extension ScriptArgument where Self: CacheKey {
    /// The bytes of the value as a key.
    public var scriptBytes: [UInt8] { keyBytes }
}

extension String: ScriptArgument {}
extension Substring: ScriptArgument {}
extension [UInt8]: ScriptArgument {}
extension Int: ScriptArgument {}
extension Int16: ScriptArgument {}
extension Int32: ScriptArgument {}
extension Int64: ScriptArgument {}
extension UInt: ScriptArgument {}
extension UInt16: ScriptArgument {}
extension UInt32: ScriptArgument {}
extension UInt64: ScriptArgument {}

extension Double: ScriptArgument {
    /// The shortest decimal digits that represent exactly this number.
    public var scriptBytes: [UInt8] { Array(description.utf8) }
}

extension Bool: ScriptArgument {
    /// `1` or `0`.
    public var scriptBytes: [UInt8] { [self ? UInt8(ascii: "1") : UInt8(ascii: "0")] }
}

extension UUID: ScriptArgument {}

extension Data: ScriptArgument {
    /// The bytes themselves.
    public var scriptBytes: [UInt8] { [UInt8](self) }
}

extension Data: ScriptResult {
    public init(scriptReply reply: RESPValue) throws(ScriptMismatch) { self.init(try [UInt8](scriptReply: reply)) }
}

/// A model as an argument or result of a script, in the bytes in which caches store it: JSON, or text and bytes
/// unchanged. A value type.
///
/// ```swift
/// try await client.script(store, keys: ["reader"], arguments: [ScriptModel(reader)])
/// let previous: ScriptModel<Reader>? = try await client.script(exchange, keys: ["reader"], arguments: [ScriptModel(reader)])
/// ```
public struct ScriptModel<Model> {
    /// The model itself.
    public var value: Model

    /// Wraps a model for a script.
    public init(_ value: Model) { self.value = value }
}

extension ScriptModel: Sendable where Model: Sendable {}
extension ScriptModel: Equatable where Model: Equatable {}

extension ScriptModel: ScriptArgument where Model: Encodable {
    /// The model's bytes. Throws if it cannot be encoded.
    public var scriptBytes: [UInt8] { get throws { try ModelCodec.standard.encode(value).0.bytes } }
}

extension ScriptModel: ScriptResult where Model: Decodable {
    /// Decodes a model from the bytes of a string.
    public init(scriptReply reply: RESPValue) throws(ScriptMismatch) {
        guard let bytes = reply.bytes else { throw ScriptMismatch(expected: "a string with a model", reply) }
        do {
            value = try bytes.withUnsafeBytes { try ModelCodec.standard.decode(Model.self, $0, storedAs: .raw) }
        } catch {
            throw ScriptMismatch(
                "the script returned \(reply.kind), which cannot be read as \(Model.self): "
                    + CodingProblem.decoding(error))
        }
    }
}
