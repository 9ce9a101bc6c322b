import LarderEngine

/// A write passed to the handler of an ``Outbox``.
public struct OutboxDelivery<Value: Sendable>: Sendable {
    /// The key's bytes.
    public let keyBytes: [UInt8]
    /// The saved model; nil if the entry was removed.
    public let value: Value?
    /// An idempotency key for the receiver: 32 hexadecimal digits, unique to this write and the same at each attempt,
    /// even after a crash.
    public let token: String
    /// The number of the attempt since the program started, beginning with 1.
    public let attempt: Int
    /// The time at which the write was saved, in milliseconds since 1970.
    public let acceptedAt: Int64

    /// The key as text.
    public var key: String { String(decoding: keyBytes, as: UTF8.self) }
}

/// A write of an ``Outbox`` that cannot be decoded, for example because a previous version of the program saved it with
/// another model.
public struct UndecodableDelivery: Sendable {
    /// The key's bytes.
    public let keyBytes: [UInt8]
    /// The saved bytes.
    public let bytes: [UInt8]
    /// The encoding of the bytes.
    public let codec: Codec
    /// The reason why the bytes cannot be decoded.
    public let error: LarderError
    /// An idempotency key for the receiver, as in ``OutboxDelivery/token``.
    public let token: String
    /// The number of the attempt, as in ``OutboxDelivery/attempt``.
    public let attempt: Int
    /// The time at which the write was saved, in milliseconds since 1970.
    public let acceptedAt: Int64

    /// The key as text.
    public var key: String { String(decoding: keyBytes, as: UTF8.self) }
}

/// An error that a handler of an ``Outbox`` throws to drop a write: it is not retried.
public struct DeliveryRefusal: Error, Hashable, Sendable, CustomStringConvertible {
    /// The reason, for people.
    public let reason: String

    /// Creates a refusal of a write, with a reason.
    public init(_ reason: String) { self.reason = reason }

    /// The reason.
    public var description: String { reason }
}

/// The counters of an ``Outbox`` since it was opened, and its pending writes.
public struct OutboxProgress: Hashable, Sendable {
    /// The number of keys with pending writes.
    public let waiting: Int
    /// The age of the oldest pending write; nil if there is none.
    public let oldest: Duration?
    /// The number of delivered writes.
    public let delivered: Int
    /// The number of repeated attempts to deliver a write.
    public let retried: Int
    /// The number of writes that the handler has refused.
    public let refused: Int
    /// The number of pending writes that cannot be decoded. This program can deliver them only if it passes a function
    /// for such writes to the initializer.
    public let undecodable: Int
    /// The reason of the last failed attempt, for people; nil if there is none.
    public let lastFailure: String?
}
