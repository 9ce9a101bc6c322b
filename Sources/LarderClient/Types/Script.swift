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
