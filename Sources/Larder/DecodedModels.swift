// Models that are kept decoded beside the bytes of hot entries, so that a read of one costs a lookup and no decoding.

/// A model that asks for an instance of its own with every read, although it is a struct or an enum.
///
/// ``Cache`` keeps decoded models beside hot entries and hands the same value out again
/// (``CacheOptions/decodedModels``). For values that is unseen. It is not done for classes and for collections and
/// optionals of classes; a struct that *holds* an object, or whose decoding has effects of its own, says so by
/// conforming to this protocol:
///
/// ```swift
/// struct Session: Codable, DecodedEachTime { var log: Logbook }    // Logbook is a class
/// ```
public protocol DecodedEachTime {}

/// A decoded model, as it is attached to an entry. What is in it never changes.
final class DecodedBox<Model> {
    let model: Model
    /// Of the codec that decoded it. Held, so that no other object gets its address.
    private let identity: AnyObject?

    init(_ model: Model, _ identity: AnyObject?) {
        self.model = model
        self.identity = identity
    }

    /// The model in an attached object, if that is a box of this very type and codec.
    @inline(__always) static func model(in object: AnyObject, _ identity: AnyObject?) -> Model? {
        // One comparison of addresses; a dynamic cast costs ten times as much. The downcast is safe after it: `type(of:)` of
        // a class instance is its exact class.
        guard ObjectIdentifier(type(of: object)) == ObjectIdentifier(DecodedBox<Model>.self) else { return nil }
        let box = unsafeDowncast(object, to: DecodedBox<Model>.self)
        return box.identity === identity ? box.model : nil
    }
}

enum DecodedSharing {
    /// Whether one decoded value may be handed out to several readers.
    static func isAllowed(_ type: Any.Type) -> Bool {
        if type is AnyClass || type is any DecodedEachTime.Type { return false }
        guard let wrapper = type as? any ModelWrapper.Type else { return true }
        return wrapper.contents.allSatisfy(isAllowed)
    }

    /// What a decoded model is taken to need, in bytes. Nobody can tell: twice its encoding is a fair guess.
    static func bytes(payloadCount: Int) -> Int { 96 + 2 * payloadCount }
}

/// A type of the standard library that is as shareable as what it holds.
private protocol ModelWrapper {
    static var contents: [Any.Type] { get }
}

extension Optional: ModelWrapper {
    fileprivate static var contents: [Any.Type] { [Wrapped.self] }
}
extension Array: ModelWrapper {
    fileprivate static var contents: [Any.Type] { [Element.self] }
}
extension ContiguousArray: ModelWrapper {
    fileprivate static var contents: [Any.Type] { [Element.self] }
}
extension Set: ModelWrapper {
    fileprivate static var contents: [Any.Type] { [Element.self] }
}
extension Dictionary: ModelWrapper {
    fileprivate static var contents: [Any.Type] { [Key.self, Value.self] }
}

extension CacheSource {
    /// The fresh model of a key: from its decoded form if the entry is hot and has one, else decoded, and then kept if the
    /// entry is hot.
    func model<Value: Decodable>(_ type: Value.Type, _ key: some CacheKey, fillCache: Bool) throws(LarderError)
        -> Value?
    {
        guard keepsDecoded else { return try decodedAnew(type, key, fillCache: fillCache) }
        let engine = try hold("get")
        defer { withExtendedLifetime(engine) {} }
        let now = database.now()
        var ticket = CommitTicket.none
        let attached = key.withKeyBytes { bytes in
            bytes.count <= Key.bytesMax ? database.readAttached(bytes, now: now, ticket: &ticket) : nil
        }
        if let attached, let model = DecodedBox<Value>.model(in: attached, codec.identity) {
            try engine.pipeline.wait(for: ticket)
            return model
        }
        return try decodedAndKept(type, try self.key(key, "get"), engine, now, fillCache: fillCache)
    }

    private func decodedAnew<Value: Decodable>(_ type: Value.Type, _ key: some CacheKey, fillCache: Bool)
        throws(LarderError) -> Value?
    {
        let key = try self.key(key, "get")
        guard let record = try record(key, fillCache: fillCache) else { return nil }
        return try decode(type, record, key)
    }

    private func decodedAndKept<Value: Decodable>(
        _ type: Value.Type, _ key: Key, _ engine: Engine, _ now: Int64, fillCache: Bool
    ) throws(LarderError) -> Value? {
        var ticket = CommitTicket.none
        var found: Record?
        var version: UInt64 = 0
        // Copied, not decoded, under the shard's lock: decoding calls the model.
        let read = try key.withBytes { bytes in
            Result { () throws(LarderError) in
                try database.readQuickly(bytes, now: now, ticket: &ticket) { header, payload, itsVersion in
                    found = Record(header, payload: payload)
                    version = itsVersion
                }
            }
        }.get()
        if case .cold = read {
            guard let record = try record(key, now: now, fillCache: fillCache) else { return nil }
            return try decode(type, record, key)
        }
        try engine.pipeline.wait(for: ticket)
        guard let found else { return nil }
        let model = try decode(type, found, key)
        if let model, version != 0, DecodedSharing.isAllowed(type) {
            let box = DecodedBox(model, codec.identity)
            key.withBytes {
                database.attach(
                    box, to: $0, version: version, bytes: DecodedSharing.bytes(payloadCount: found.payloadCount))
            }
        }
        return model
    }
}

extension Key {
    /// Calls `body` with the bytes the user gave.
    fileprivate func withBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        bytes.withUnsafeBytes { body($0) }
    }
}
