import LarderEngine
import Synchronization

/// The source of truth behind a cache: a server, a database, a web service or another larder. An ``OriginCache`` reads
/// through to it.
///
/// Only ``read(_:)`` is required. An origin that can report changes also implements ``tellsChanges`` and
/// ``tellChanges(to:)``. Without them an entry is fresh for as long as its policy and the origin's lifetime allow.
///
/// Keys and values are bytes, so that anything can be an origin. A value is stored in the cache as it is: a model in
/// the encoding of its codec. ``ClosureOrigin`` builds an origin from closures, for bytes or for models.
///
/// Methods are called from any thread, several at the same time.
public protocol CacheOrigin: Sendable {
    /// The name of the origin in error messages. Must not contain secrets.
    var name: String { get }

    /// Reads entries.
    /// - Parameter keys: distinct keys, at least one.
    /// - Returns: one answer per key, in the order of `keys`.
    /// - Throws: an error if any of the keys cannot be read. The reader then gets a stale value if there is one, else
    ///   this error.
    func read(_ keys: [[UInt8]]) async throws -> [OriginAnswer]

    /// Stores a value, and returns after the origin has stored it.
    /// - Throws: any error. The cache then removes its entry if the origin may have stored the value:
    ///   ``CacheOrigin/mayHaveChanged(_:after:)``.
    func write(_ value: OriginWriting, forKey key: [UInt8]) async throws -> OriginAcknowledgement

    /// Removes entries, and returns after they are removed. Missing entries are not an error. Throws as
    /// ``write(_:forKey:)``.
    func remove(_ keys: [[UInt8]]) async throws

    /// Whether a write or a removal that threw an error may have changed some of its keys. If not, the cache keeps its
    /// entries for them.
    func mayHaveChanged(_ keys: [[UInt8]], after error: any Error) -> Bool

    /// Whether the origin reports changes. If so, an entry is fresh only if it was read since ``OriginChanges/begin()``
    /// and has not been reported as changed. Constant.
    var tellsChanges: Bool { get }

    /// Reports changes for as long as it can. If ``tellsChanges`` is true, the cache calls this method when it is
    /// created, and again after a delay when the method has returned or thrown. Until then no entry counts as current.
    /// The task is cancelled when the cache is closed.
    func tellChanges(to changes: OriginChanges) async throws

    /// The current epoch, or nil if nothing is known to be current now. Values that the origin has returned in one
    /// epoch are current until they are reported as changed or the epoch changes. For origins that detect a lost
    /// connection by time, such as those with a heartbeat. Called at every read: must return at once, and must not call
    /// the cache.
    var epoch: UInt64? { get }

    /// Whether the origin limits its own calls and backs off after failures. The cache then adds no limits of its own;
    /// otherwise those of ``OriginCacheLimits`` apply. Constant.
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

    /// False for errors that exclude a change: ``OriginFailure/readOnly(_:)``, ``OriginFailure/refused(_:)`` and
    /// ``OriginFailure/resting(_:reason:)``. True for all others.
    public func mayHaveChanged(_ keys: [[UInt8]], after error: any Error) -> Bool {
        switch error as? OriginFailure {
        case .readOnly, .refused, .resting: false
        case .wrongAnswers, .timedOut, nil: true
        }
    }

    /// False.
    public var tellsChanges: Bool { false }

    /// Returns at once.
    public func tellChanges(to changes: OriginChanges) async throws {}

    /// Constant: the epoch never changes.
    public var epoch: UInt64? { 0 }

    /// False.
    public var keepsLimits: Bool { false }
}

/// The answer of an origin for a key.
public struct OriginAnswer: Sendable {
    /// The value; nil if the origin has none.
    public var bytes: [UInt8]?
    /// The encoding of the value. ``Codec/raw``, the default, is right for JSON, property lists, text and bytes.
    public var codec: Codec
    /// The remaining lifetime at the origin, counted from the start of the read; nil if the entry does not expire.
    public var lifetime: Duration?
    /// Whether the origin will report a change of the entry. Ignored for origins that report no changes. If it is
    /// false, the value is returned to the reader but not cached.
    public var isWatched = true

    /// Creates an answer with a value.
    public init(_ bytes: [UInt8], codec: Codec = .raw, lifetime: Duration? = nil) {
        self.bytes = bytes
        self.codec = codec
        self.lifetime = lifetime
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
        self.bytes = bytes
        self.codec = codec
        self.lifetime = lifetime
    }
}

/// The reply of an origin to a write.
public struct OriginAcknowledgement: Sendable {
    /// The lifetime at the origin, counted from the start of the write; nil if the entry does not expire.
    public var lifetime: Duration?
    /// Whether the origin will report a change of the entry, as for ``OriginAnswer/isWatched``.
    public var isWatched: Bool
    /// The moment at which the origin confirmed the value after the write, if it does. Changes reported before it,
    /// including the write itself, are ignored. If it is nil, a change that was reported during the write may be newer
    /// than the value, which is then not cached.
    public var confirmedAt: OriginMoment?

    /// Creates the reply to a successful write.
    public init(lifetime: Duration? = nil, isWatched: Bool = true) {
        self.lifetime = lifetime
        self.isWatched = isWatched
    }
}

/// Errors of the origins in Larder, and ``refused(_:)`` for origins of your own.
public enum OriginFailure: Error, Hashable, Sendable, CustomStringConvertible {
    /// The origin does not support writes.
    case readOnly(String)
    /// The number of answers differs from the number of keys.
    case wrongAnswers(String, expected: Int, got: Int)
    /// The circuit breaker is open after several failures in a row: the origin is not called for a while. The values
    /// are its name and the last failure. Nothing was changed. See ``OriginCacheLimits``.
    case resting(String, reason: String)
    /// The origin did not answer within ``OriginCacheLimits/call``. A write or removal may have been done, or may still
    /// be done: nothing is cached for its key until the origin's function has returned.
    case timedOut(String, milliseconds: Int)
    /// The origin rejected this call, and changed nothing. Throw this from your own origin. It does not count as a
    /// failure of the origin.
    case refused(String)

    /// A description of the error for people.
    public var description: String {
        switch self {
        case .readOnly(let name): "the origin '\(name)' is read-only: it has no function for writes"
        case .wrongAnswers(let name, let expected, let got):
            "the origin '\(name)' returned \(got) values for \(expected) keys; it must return one per key, in the same order"
        case .resting(let name, let reason):
            "the origin '\(name)' is backing off after a failure: \(reason)"
        case .timedOut(let name, let milliseconds): "the origin '\(name)' did not answer within \(milliseconds) ms"
        case .refused(let reason): "the origin refused: \(reason)"
        }
    }
}
