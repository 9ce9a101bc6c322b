import LarderEngine

/// An origin made of closures: for a web service, a database, anything that a function can ask.
///
/// ```swift
/// let origin = ClosureOrigin("prices") { key in OriginAnswer(try await http.get("/prices/" + key)) }
/// let prices = OriginCache(try Cache(named: "prices", policy: .middle), origin: origin)
/// ```
/// It says nothing of changes: entries live as long as their policy and the lifetimes in its answers say.
/// ``OriginCache/invalidate(_:)-(CacheKey)`` ends an entry by hand.
public struct ClosureOrigin: CacheOrigin {
    public let name: String
    private let reads: @Sendable ([[UInt8]]) async throws -> [OriginAnswer]
    private let writes: (@Sendable ([UInt8], OriginWriting) async throws -> OriginAcknowledgement)?
    private let removes: (@Sendable ([[UInt8]]) async throws -> Void)?

    /// An origin that is asked for several keys at once.
    /// - Parameters:
    ///   - name: for messages.
    ///   - write: stores a value; nil if the origin takes none.
    ///   - remove: removes entries; nil if the origin takes no writes.
    ///   - readMany: gets distinct keys, and gives an answer for each, in their order.
    public init(
        _ name: String,
        write: (@Sendable (_ key: [UInt8], _ value: OriginWriting) async throws -> OriginAcknowledgement)? = nil,
        remove: (@Sendable (_ keys: [[UInt8]]) async throws -> Void)? = nil,
        readMany: @escaping @Sendable (_ keys: [[UInt8]]) async throws -> [OriginAnswer]
    ) {
        self.name = name
        reads = readMany
        writes = write
        removes = remove
    }

    /// An origin that is asked for one key at a time, by its text. Several keys are asked for at the same time, at most
    /// ``concurrentReads``.
    /// - Parameters:
    ///   - name: for messages.
    ///   - read: gives the answer for a key. Keys that are no UTF-8 fail with ``OriginFailure/refused(_:)``: those are for
    ///     an origin that takes bytes.
    public init(_ name: String, read: @escaping @Sendable (_ key: String) async throws -> OriginAnswer) {
        self.init(name, readMany: { keys in try await Self.each(keys) { try await read(Self.text($0)) } })
    }

    /// An origin whose values are models.
    /// - Parameters:
    ///   - name: for messages.
    ///   - type: the models' type.
    ///   - codec: how they are encoded for the cache.
    ///   - lifetime: for how long what it gives is good; nil: as long as the policy of the cache says.
    ///   - read: gives the model of a key, nil if there is none.
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

    /// How many keys of one call are asked for at the same time: 8.
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
        // Else two keys could be one text.
        throw .refused("this origin takes keys that are text, and '\(Key(key))' is no UTF-8")
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
