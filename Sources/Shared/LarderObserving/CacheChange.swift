import LarderVocabulary

/// A change of one or more entries, as reported by `changes()` of the library's `Cache` and the client's `RemoteCache`.
///
/// It contains the key, but not the value. Several pending changes of a key become one. A read after this change was
/// received returns the changed entry or a newer one. Thread-safe: a value.
public struct CacheChange: Hashable, Sendable {
    /// The kind of a change.
    public enum Kind: String, Hashable, Sendable, CaseIterable {
        /// An entry was stored, or its lifetime was changed.
        case stored
        /// An entry was removed.
        case removed
        /// An entry was evicted because of the disk limit.
        case evicted
        /// An entry has expired, and no new entry was stored under its key.
        case expired
        /// Many entries were removed. Without ``CacheChange/tags``: all entries of the database. With tags: all entries
        /// with one of these tags (which may also have been made stale instead). The keys are not reported.
        case purged
        /// Changes were lost, because too many were pending or the connection was lost. Any entry may have changed, so
        /// read all entries again. Later changes are reported as usual.
        case fellBehind
    }

    /// The kind of the change.
    public let kind: Kind
    /// The bytes of the key; nil for ``Kind/purged`` and ``Kind/fellBehind``, which concern several keys.
    public let keyBytes: [UInt8]?
    /// The purged tags if ``kind`` is ``Kind/purged``. Empty if the whole database was emptied, and for other kinds.
    public let tags: [[UInt8]]

    /// The key as text. Bytes that are not UTF-8 appear as U+FFFD; use ``keyBytes`` for such keys.
    public var key: String? { keyBytes.map { String(decoding: $0, as: UTF8.self) } }

    /// Creates a change, for tests of programs that process changes.
    public init(_ kind: Kind, keyBytes: [UInt8]? = nil, tags: [[UInt8]] = []) {
        self.kind = kind
        self.keyBytes = keyBytes
        self.tags = tags
    }
}

extension CacheChange: CustomStringConvertible {
    /// A description such as `stored reader:1`.
    public var description: String {
        let names = (keyBytes.map { [$0] } ?? tags).map { printableKey($0) }
        return ([kind.rawValue] + names).joined(separator: " ")
    }
}

/// A change, and the key's value when the change was returned: see ``DecodedChanges``. Thread-safe: a value.
public struct DecodedChange<Value: Sendable>: Sendable {
    /// The change without the value.
    public let change: CacheChange
    private let result: Result<Value?, any Error>

    package init(_ change: CacheChange, _ result: Result<Value?, any Error>) {
        self.change = change
        self.result = result
    }

    /// The kind of the change.
    public var kind: CacheChange.Kind { change.kind }
    /// The key as text: see ``CacheChange/key``.
    public var key: String? { change.key }

    /// The key's value when the iterator returned this change. Nil if the change is not ``CacheChange/Kind/stored``, or
    /// if the entry has been removed meanwhile; a later change then reports the removal.
    /// - Throws: the errors of the cache's `value(forKey:)`, for example if the value has another type. The sequence
    ///   continues nevertheless.
    public var value: Value? {
        get throws { try result.get() }
    }
}
