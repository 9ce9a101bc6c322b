import LarderEngine

/// An origin made of closures: for a web service, a database, or anything else that a function can read.
///
/// ```swift
/// let origin = ClosureOrigin("prices") { key in OriginAnswer(try await http.get("/prices/" + key)) }
/// let prices = OriginCache(try Cache(named: "prices", policy: .middle), origin: origin)
/// ```
/// This origin reports no changes: entries live as long as their policy and the lifetimes in the answers allow. Call
/// ``OriginCache/invalidate(_:)-(CacheKey)`` when you know that a value has changed.
public struct ClosureOrigin: CacheOrigin {
    public let name: String
    private let reads: @Sendable ([[UInt8]]) async throws -> [OriginAnswer]
    private let writes: (@Sendable ([UInt8], OriginWriting) async throws -> OriginAcknowledgement)?
    private let removes: (@Sendable ([[UInt8]]) async throws -> Void)?

    /// Creates an origin that reads several keys with one call.
    /// - Parameters:
    ///   - name: the name in messages.
    ///   - write: stores a value; nil if the origin is read-only.
    ///   - remove: removes entries; nil if the origin is read-only.
    ///   - readMany: reads distinct keys, and returns one answer per key in their order.
    public init(
        _ name: String,
        write: (@Sendable (_ key: [UInt8], _ value: OriginWriting) async throws -> OriginAcknowledgement)? = nil,
        remove: (@Sendable (_ keys: [[UInt8]]) async throws -> Void)? = nil,
        readMany: @escaping @Sendable (_ keys: [[UInt8]]) async throws -> [OriginAnswer]
    ) { (self.name, reads, writes, removes) = (name, readMany, write, remove) }

    /// Creates an origin that reads one key at a time, as text. Several keys are read concurrently, at most
    /// ``concurrentReads`` at a time.
    /// - Parameters:
    ///   - name: the name in messages.
    ///   - read: returns the answer for a key. Keys that are not UTF-8 fail with ``OriginFailure/refused(_:)``; use the
    ///     initializer that takes bytes for those.
    public init(_ name: String, read: @escaping @Sendable (_ key: String) async throws -> OriginAnswer) {
        self.init(name, readMany: { keys in try await Self.each(keys) { try await read(Self.text($0)) } })
    }

    /// Creates an origin whose values are models.
    /// - Parameters:
    ///   - name: the name in messages.
    ///   - type: the type of the models.
    ///   - codec: encodes the models for the cache.
    ///   - lifetime: how long a model is fresh; nil for as long as the policy of the cache allows.
    ///   - read: returns the model of a key, or nil if there is none.
    public init<Value: Codable & Sendable>(
        _ name: String, of type: Value.Type, codec: ModelCodec = .standard, lifetime: Duration? = nil,
        read: @escaping @Sendable (_ key: String) async throws -> Value?
    ) {
        self.init(name) { key in
            guard let value = try await read(key) else { return .absent }
            let (payload, used) = try codec.encode(value)
            return OriginAnswer(payload.bytes, codec: used, lifetime: lifetime)
        }
    }

    /// The maximum number of keys of one call that are read at the same time: 8.
    public static let concurrentReads = 8

    public func read(_ keys: [[UInt8]]) async throws -> [OriginAnswer] { try await reads(keys) }

    public func write(_ value: OriginWriting, forKey key: [UInt8]) async throws -> OriginAcknowledgement {
        guard let writes else { throw OriginFailure.readOnly(name) }
        return try await writes(key, value)
    }

    public func remove(_ keys: [[UInt8]]) async throws {
        guard let removes else { throw OriginFailure.readOnly(name) }
        try await removes(keys)
    }

    private static func text(_ key: [UInt8]) throws(OriginFailure) -> String {
        if let text = String(validating: key, as: UTF8.self) { return text }
        // Refuse keys that are not UTF-8: two of them could have the same text.
        throw .refused("this origin accepts only keys that are text, and '\(Key(key))' is not UTF-8")
    }

    private static func each(
        _ keys: [[UInt8]], _ read: @escaping @Sendable ([UInt8]) async throws -> OriginAnswer
    ) async throws -> [OriginAnswer] {
        if keys.count == 1 { return [try await read(keys[0])] }
        return try await withThrowingTaskGroup(of: (Int, OriginAnswer).self) { group in
            var answers = [OriginAnswer](repeating: .absent, count: keys.count)
            for (position, key) in keys.enumerated() {
                if position >= concurrentReads, let (done, answer) = try await group.next() { answers[done] = answer }
                group.addTask { (position, try await read(key)) }
            }
            for try await (done, answer) in group { answers[done] = answer }
            return answers
        }
    }
}
