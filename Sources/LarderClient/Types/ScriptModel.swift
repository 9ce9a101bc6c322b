import LarderModelCoding

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
