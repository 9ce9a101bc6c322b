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
class DecodedModel {
    private let type: ObjectIdentifier
    /// Of the codec that decoded it. Held, so that no other object gets its address.
    private let identity: AnyObject?
    /// To a value of that type.
    private let value: UnsafeRawPointer

    fileprivate init(_ type: Any.Type, _ identity: AnyObject?, _ value: UnsafeRawPointer) {
        self.type = ObjectIdentifier(type)
        self.identity = identity
        self.value = value
    }

    /// The model in an attached object, if it is of this very type and was decoded by this codec. The generic subclass is not
    /// mentioned: to look its metadata up takes longer than the comparison.
    @inline(__always) static func model<Model>(_ type: Model.Type, in object: AnyObject, _ identity: AnyObject?)
        -> Model?
    {
        guard let found = object as? DecodedModel, found.type == ObjectIdentifier(type), found.identity === identity
        else {
            return nil
        }
        // The type was compared, and the value lives as long as the object that holds it.
        return withExtendedLifetime(found) { found.value.assumingMemoryBound(to: Model.self).pointee }
    }
}

/// Owns the value of a ``DecodedModel``.
final class DecodedBox<Model>: DecodedModel {
    private let model: UnsafeMutablePointer<Model>

    init(_ model: Model, _ identity: AnyObject?) {
        let place = UnsafeMutablePointer<Model>.allocate(capacity: 1)
        place.initialize(to: model)
        self.model = place
        super.init(Model.self, identity, UnsafeRawPointer(place))
    }

    deinit {
        model.deinitialize(count: 1)
        model.deallocate()
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
        if let attached, let model = DecodedModel.model(type, in: attached, codec.identity) {
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
            let bytes = DecodedSharing.bytes(payloadCount: found.payloadCount)
            let box = DecodedBox(model, codec.identity)
            key.withBytes { database.attach(box, to: $0, version: version, bytes: bytes) }
        }
        return model
    }
}
