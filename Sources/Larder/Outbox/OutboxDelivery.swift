import LarderEngine

/// A write that an ``Outbox`` hands to its handler.
public struct OutboxDelivery<Value: Sendable>: Sendable {
    /// The key's bytes.
    public let keyBytes: [UInt8]
    /// The model that was saved; nil if the entry was removed.
    public let value: Value?
    /// The same 32 hexadecimal digits at each attempt to deliver this write, also after a crash, and no other write's: give
    /// it to a server that does nothing twice, as an idempotency key.
    public let token: String
    /// 1 at the first attempt since the program has started, 2 at the second.
    public let attempt: Int
    /// When it was saved, in milliseconds since 1970.
    public let acceptedAt: Int64

    /// The key as text.
    public var key: String { String(decoding: keyBytes, as: UTF8.self) }
}

/// A write that an ``Outbox`` has and cannot decode, such as one that a former version of the program has saved, with another
/// model.
public struct UndecodableDelivery: Sendable {
    /// The key's bytes.
    public let keyBytes: [UInt8]
    /// What was saved.
    public let bytes: [UInt8]
    /// How it is encoded.
    public let codec: Codec
    /// Why it cannot be decoded.
    public let error: LarderError
    /// As for ``OutboxDelivery/token``.
    public let token: String
    /// As for ``OutboxDelivery/attempt``.
    public let attempt: Int
    /// When it was saved, in milliseconds since 1970.
    public let acceptedAt: Int64

    /// The key as text.
    public var key: String { String(decoding: keyBytes, as: UTF8.self) }
}

/// What a handler of an ``Outbox`` throws to give a write up: it is not tried again, and forgotten.
public struct DeliveryRefusal: Error, Hashable, Sendable, CustomStringConvertible {
    /// Why, for people.
    public let reason: String

    /// Gives a write up.
    public init(_ reason: String) { self.reason = reason }

    /// The reason.
    public var description: String { reason }
}

/// What an ``Outbox`` has done since it was opened, and what is left.
public struct OutboxProgress: Hashable, Sendable {
    /// How many keys wait.
    public let waiting: Int
    /// For how long the oldest has waited; nil if none waits.
    public let oldest: Duration?
    /// Writes that the handler has delivered.
    public let delivered: Int
    /// Attempts after the first.
    public let retried: Int
    /// Writes that the handler has given up.
    public let refused: Int
    /// How many of those that wait cannot be decoded: no attempt of this program will deliver them, unless it has a function
    /// for them.
    public let undecodable: Int
    /// Why the last attempt failed that did, for people; nil if none has.
    public let lastFailure: String?
}
