/// A script in Lua 5.1, which larderd runs on the entries of its keys: nobody else sees or changes them meanwhile.
///
/// ```swift
/// let takeAway = Script("if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0")
/// let wasRemoved: Bool = try await client.script(takeAway, keys: ["owner"], arguments: ["ana"])
/// ```
/// Begin its text with `#!lua flags=no-writes` if it only reads. A value.
public struct Script: Sendable, Hashable, ExpressibleByStringLiteral {
    /// The script itself.
    public let text: String

    /// A script. Whether it is one is found out by the server.
    public init(_ text: String) { self.text = text }

    /// A script that stands in the source.
    public init(stringLiteral text: String) { self.init(text) }

    /// Whether the bytes are the same: texts that only look the same are two scripts.
    public static func == (left: Script, right: Script) -> Bool { left.text.utf8.elementsEqual(right.text.utf8) }

    public func hash(into hasher: inout Hasher) {
        var text = text
        text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    }
}
