import LarderEngine

/// The source of truth behind a cache: a server, a database, a web service or another larder. An ``OriginCache`` reads
/// through to it.
///
/// Only ``read(_:)`` is required. An origin that can report changes also implements ``tellsChanges`` and
/// ``tellChanges(to:)``. Without them, an entry is fresh for as long as its policy and the lifetime in the origin's
/// answer allow.
///
/// Keys and values are bytes, so that anything can be an origin. The cache stores the bytes of a value unchanged; for a
/// model, these are the bytes from its codec. ``ClosureOrigin`` builds an origin from closures, for bytes or for
/// models.
///
/// The cache calls the methods from any thread, and several at the same time.
public protocol CacheOrigin: Sendable {
    /// The name of the origin in error messages. Must not contain secrets.
    var name: String { get }

    /// Reads entries.
    /// - Parameter keys: distinct keys, at least one.
    /// - Returns: one answer per key, in the order of `keys`.
    /// - Throws: an error if any of the keys cannot be read. The caller of the cache then gets a stale value if there
    ///   is one, else this error.
    func read(_ keys: [[UInt8]]) async throws -> [OriginAnswer]

    /// Stores a value, and returns after the origin has stored it.
    /// - Throws: any error. If ``CacheOrigin/mayHaveChanged(_:after:)`` reports that the origin may still have stored
    ///   the value, the cache removes its entry.
    func write(_ value: OriginWriting, forKey key: [UInt8]) async throws -> OriginAcknowledgement

    /// Removes entries, and returns after they are removed. Missing entries are not an error. Errors are handled like
    /// those of ``write(_:forKey:)``.
    func remove(_ keys: [[UInt8]]) async throws

    /// Returns whether a write or a removal that threw `error` may have changed values of `keys` at the origin. If it
    /// returns false, the cache keeps its entries of these keys.
    func mayHaveChanged(_ keys: [[UInt8]], after error: any Error) -> Bool

    /// Whether the origin reports changes. If so, an entry is fresh only if it was read after the last
    /// ``OriginChanges/begin()`` and was not reported as changed since. Must always return the same value.
    var tellsChanges: Bool { get }

    /// Reports changes to `changes` until reporting is no longer possible, or the task is cancelled; then returns or
    /// throws. If ``tellsChanges`` is true, the cache runs this method when the cache is created. Whenever the method
    /// has ended, the cache runs it again after a delay. Entries count as current only between
    /// ``OriginChanges/begin()`` and the end of the method. The task is cancelled when the cache is closed.
    func tellChanges(to changes: OriginChanges) async throws

    /// The number of the current epoch, or nil if no value is known to be current now. A value that the origin has
    /// returned counts as current until it is reported as changed or the epoch changes. Implement this property for an
    /// origin that detects a lost connection by time, for example with a heartbeat. The cache reads this property
    /// before every read of an entry: the property must return quickly, and must not call the cache.
    var epoch: UInt64? { get }

    /// Whether the origin limits the time of its calls itself and backs off after failures. If so, the cache adds no
    /// limits; otherwise those of ``OriginCacheLimits`` apply. Must always return the same value.
    var keepsLimits: Bool { get }
}

extension CacheOrigin {
    /// The type's name.
    public var name: String { "\(Self.self)" }

    /// Throws ``OriginFailure/readOnly(_:)``.
    public func write(_ value: OriginWriting, forKey key: [UInt8]) async throws -> OriginAcknowledgement {
        throw OriginFailure.readOnly(name)
    }

    /// Throws ``OriginFailure/readOnly(_:)``.
    public func remove(_ keys: [[UInt8]]) async throws { throw OriginFailure.readOnly(name) }

    /// Returns false for errors after which the origin is certain to be unchanged: ``OriginFailure/readOnly(_:)``,
    /// ``OriginFailure/refused(_:)`` and ``OriginFailure/resting(_:reason:)``. Returns true for all others.
    public func mayHaveChanged(_ keys: [[UInt8]], after error: any Error) -> Bool {
        switch error as? OriginFailure {
        case .readOnly, .refused, .resting: false
        case .wrongAnswers, .timedOut, nil: true
        }
    }

    /// False.
    public var tellsChanges: Bool { false }

    /// Returns immediately, without reporting a change.
    public func tellChanges(to changes: OriginChanges) async throws {}

    /// Always 0: the epoch never changes.
    public var epoch: UInt64? { 0 }

    /// False.
    public var keepsLimits: Bool { false }
}

/// The answer of an origin for a key.
public struct OriginAnswer: Sendable {
    /// The value; nil if the origin has no value for the key.
    public var bytes: [UInt8]?
    /// The encoding of the value. ``Codec/raw``, the default, is right for JSON, property lists, text and bytes.
    public var codec: Codec
    /// The remaining lifetime at the origin, counted from the start of the read; nil if the entry does not expire.
    public var lifetime: Duration?
    /// Whether the origin will report a change of the entry. If false, the value is returned to the caller but not
    /// cached. Ignored for origins that report no changes.
    public var isWatched = true

    /// Creates an answer with a value.
    public init(_ bytes: [UInt8], codec: Codec = .raw, lifetime: Duration? = nil) {
        (self.bytes, self.codec, self.lifetime) = (bytes, codec, lifetime)
    }

    private init() {
        bytes = nil
        codec = .raw
    }

    /// The answer for a key without a value.
    public static let absent = OriginAnswer()
}

/// A value to store at an origin.
public struct OriginWriting: Sendable {
    /// The value.
    public let bytes: [UInt8]
    /// The encoding of the value.
    public let codec: Codec
    /// The lifetime at the origin; nil if the entry does not expire.
    public let lifetime: Duration?

    /// Creates a value to store.
    public init(_ bytes: [UInt8], codec: Codec = .raw, lifetime: Duration? = nil) {
        (self.bytes, self.codec, self.lifetime) = (bytes, codec, lifetime)
    }
}

/// The reply of an origin to a write.
public struct OriginAcknowledgement: Sendable {
    /// The lifetime at the origin, counted from the start of the write; nil if the entry does not expire.
    public var lifetime: Duration?
    /// Whether the origin will report a change of the entry, as for ``OriginAnswer/isWatched``.
    public var isWatched: Bool
    /// The moment at which the origin confirmed that it has stored the value; nil if it does not confirm writes.
    /// Changes that were reported before this moment, including the write itself, are ignored. With nil, the value is
    /// not cached when a change of the key is reported during the write, because the value may be outdated.
    public var confirmedAt: OriginMoment?

    /// Creates the reply to a successful write.
    public init(lifetime: Duration? = nil, isWatched: Bool = true) {
        (self.lifetime, self.isWatched) = (lifetime, isWatched)
    }
}

/// Errors of the origins in Larder, and ``refused(_:)`` for origins of your own.
public enum OriginFailure: Error, Hashable, Sendable, CustomStringConvertible {
    /// The origin with this name does not support writes.
    case readOnly(String)
    /// The number of answers from the origin with this name differs from the number of keys.
    case wrongAnswers(String, expected: Int, got: Int)
    /// The circuit breaker is open after several failures in a row: the origin is not called for a while. The
    /// associated values are the origin's name and its last failure. Nothing was changed. See ``OriginCacheLimits``.
    case resting(String, reason: String)
    /// The origin did not answer within ``OriginCacheLimits/call``. A write or removal may still take effect, so
    /// nothing is cached for its key until the origin's function has returned.
    case timedOut(String, milliseconds: Int)
    /// The origin rejected this call for the given reason, and changed nothing. Throw this from your own origin. It
    /// does not count as a failure of the origin.
    case refused(String)

    /// A description of the error for people.
    public var description: String {
        switch self {
        case .readOnly(let name): "the origin '\(name)' is read-only: it has no function for writes"
        case .wrongAnswers(let name, let expected, let got):
            "the origin '\(name)' returned \(got) values for \(expected) keys; it must return one per key, in the same order"
        case .resting(let name, let reason):
            "the origin '\(name)' gets no requests for a while after several failures, the last being: \(reason)"
        case .timedOut(let name, let milliseconds): "the origin '\(name)' did not answer within \(milliseconds) ms"
        case .refused(let reason): "the origin refused: \(reason)"
        }
    }
}
