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
