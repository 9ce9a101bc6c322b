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

    /// Where the model in an attached object is, if it is of this very type and was decoded by this codec; valid while
    /// the object is there. The generic subclass is not mentioned: to look its metadata up takes longer than the
    /// comparison.
    @inline(__always) static func model(_ type: ObjectIdentifier, in object: AnyObject, _ identity: AnyObject?)
        -> UnsafeRawPointer?
    {
        guard let found = object as? DecodedModel, found.type == type, found.identity === identity else { return nil }
        return found.value
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
    ///
    /// Inlinable, so that a caller who names the types copies the model as what it is, and has the key's bytes without a
    /// detour: half of what a hot read costs otherwise.
    @inlinable func model<Value: Decodable>(_ type: Value.Type, _ key: some CacheKey, fillCache: Bool)
        throws(LarderError) -> Value?
    {
        var model: Value?
        let sequence = key.withKeyBytes { bytes in
            // The type is compared before the value is handed over.
            readDecoded(ObjectIdentifier(type), bytes) { model = $0.assumingMemoryBound(to: Value.self).pointee }
        }
        guard let sequence else { return try decodedModel(type, key, fillCache: fillCache) }
        if sequence != 0 { try waitForCommit(sequence) }
        return model
    }

    /// Hands over the decoded model that is kept beside the fresh entry of a key, if there is one of this type.
    /// - Parameter body: called at most once, with the address of the model, to copy it. Locks are held meanwhile.
    /// - Returns: nil if `body` was not called, else the commit unit to wait for with ``waitForCommit(_:)``; 0 for none.
    @usableFromInline func readDecoded(
        _ type: ObjectIdentifier, _ key: UnsafeRawBufferPointer, _ body: (UnsafeRawPointer) -> Void
    ) -> UInt64? {
        // A larder that is shut down meanwhile has nothing attached any more; so it need not be held here.
        guard keepsDecoded, !isClosed, key.count <= Key.bytesMax else { return nil }
        var ticket = CommitTicket.none
        let isRead = database.readAttached(key, now: database.now(), ticket: &ticket) { object in
            guard let model = DecodedModel.model(type, in: object, codecIdentity) else { return false }
            body(model)
            return true
        }
        return isRead ? ticket.sequence : nil
    }

    /// Waits until what a model was read from is committed.
    @usableFromInline func waitForCommit(_ sequence: UInt64) throws(LarderError) {
        try whileOpen("get") { (engine) throws(LarderError) in
            try engine.pipeline.wait(for: CommitTicket(sequence: sequence))
        }
    }

    /// As ``model(_:_:fillCache:)`` where no decoded model is kept.
    @usableFromInline func decodedModel<Value: Decodable>(_ type: Value.Type, _ key: some CacheKey, fillCache: Bool)
        throws(LarderError) -> Value?
    {
        guard keepsDecoded else { return try decodedAnew(type, key, fillCache: fillCache) }
        let lease = try hold("get")
        defer { withExtendedLifetime(lease) {} }
        let now = database.now()
        return try decodedAndKept(type, try self.key(key, "get"), lease.engine, now, fillCache: fillCache)
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
            let box = DecodedBox(model, codecIdentity)
            key.withBytes { database.attach(box, to: $0, version: version, bytes: bytes) }
        }
        return model
    }
}
