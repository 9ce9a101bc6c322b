#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

extension UUID: ScriptArgument {}

extension Data: ScriptArgument {
    /// The bytes themselves.
    public var scriptBytes: [UInt8] { [UInt8](self) }
}

extension Data: ScriptResult {
    public init(scriptReply reply: RESPValue) throws(ScriptMismatch) { self.init(try [UInt8](scriptReply: reply)) }
}
