/// What a script can be given as one of `ARGV`: text, bytes, numbers, truth, a UUID, and models as ``ScriptModel``.
///
/// A script gets each argument as a string: a number as its decimal digits, `true` and `false` as `1` and `0`.
public protocol ScriptArgument {
    /// The bytes of the argument.
    /// - Throws: if the value has none, such as a model that cannot be encoded.
    var scriptBytes: [UInt8] { get throws }
}

extension ScriptArgument where Self: CacheKey {
    /// The bytes that it would have as a key.
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
    /// The shortest digits that make this number again.
    public var scriptBytes: [UInt8] { Array(description.utf8) }
}

extension Bool: ScriptArgument {
    /// `1` or `0`.
    public var scriptBytes: [UInt8] { [self ? UInt8(ascii: "1") : UInt8(ascii: "0")] }
}
