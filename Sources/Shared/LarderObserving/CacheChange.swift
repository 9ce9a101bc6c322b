import LarderVocabulary

/// A change of an entry, or of many, as reported by `changes()` of the library's `Cache` and of the client's
/// `RemoteCache`.
///
/// Reports that a key changed, not its value. Pending changes of a key are coalesced. A read after a change returns
/// that state or a newer one. A value.
public struct CacheChange: Hashable, Sendable {
    /// The kind of a change.
    public enum Kind: String, Hashable, Sendable, CaseIterable {
        /// An entry was stored, or its lifetime was changed.
        case stored
        /// An entry was removed.
        case removed
        /// An entry was evicted to keep a disk limit.
        case evicted
        /// An entry expired, and its key was not stored again.
        case expired
        /// Without ``CacheChange/tags``: the database was emptied. With them: all entries with one of the tags were
        /// removed, or made stale. The keys are not reported.
        case purged
        /// Changes were missed: too many were pending, or the connection was lost. Everything may have changed, so
        /// reload everything. Later changes are reported as usual.
        case fellBehind
    }

    /// The kind of the change.
    public let kind: Kind
    /// The bytes of the key; nil for ``Kind/purged`` and ``Kind/fellBehind``, which concern more than one.
    public let keyBytes: [UInt8]?
    /// The purged tags, if ``kind`` is ``Kind/purged`` and not the whole database was emptied; otherwise none.
    public let tags: [[UInt8]]

    /// The key as text. Bytes that are not UTF-8 appear as U+FFFD; use ``keyBytes`` for such keys.
    public var key: String? { keyBytes.map { String(decoding: $0, as: UTF8.self) } }

    /// A change, for tests of programs that process changes.
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

/// A change with the value that was read when it was taken: see ``DecodedChanges``. A value.
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

    /// The newest value of the key. Nil if the entry was removed in the meantime, which a later change reports, and for
    /// changes other than ``CacheChange/Kind/stored``.
    /// - Throws: the errors of the cache's `value(forKey:)`, also for a value of another type. The sequence continues.
    public var value: Value? {
        get throws { try result.get() }
    }
}
