import LarderVocabulary

/// A change of an entry, or of many, as `changes()` of the library's `Cache` and of the client's `RemoteCache` tell it.
///
/// It says that something happened, not what is stored now: changes of one key that nobody has taken yet become one. Who
/// reads the key after it was told a change gets the state after that change, or a newer one. A value.
public struct CacheChange: Hashable, Sendable {
    /// What happened.
    public enum Kind: String, Hashable, Sendable, CaseIterable {
        /// An entry was stored, or given another lifetime.
        case stored
        /// An entry was removed.
        case removed
        /// An entry was removed by nobody, to keep a limit of the disk.
        case evicted
        /// An entry's deadline has passed, and nothing was stored under its key since.
        case expired
        /// Without ``CacheChange/tags``: the database was emptied. With them: all entries with one of them are gone, or
        /// stale. No key is told.
        case purged
        /// Changes are missing: too many were waiting to be taken, or the connection was lost meanwhile. Everything may
        /// have changed; changes after this one are told again.
        case fellBehind
    }

    /// What happened.
    public let kind: Kind
    /// The bytes of the key; nil for ``Kind/purged`` and ``Kind/fellBehind``, which are about more than one.
    public let keyBytes: [UInt8]?
    /// The purged tags, if ``kind`` is ``Kind/purged`` and not the whole database was emptied; otherwise none.
    public let tags: [[UInt8]]

    /// The key as text. Bytes that are not UTF-8 appear as U+FFFD; use ``keyBytes`` for such keys.
    public var key: String? { keyBytes.map { String(decoding: $0, as: UTF8.self) } }

    /// A change, for tests of programs that take changes.
    public init(_ kind: Kind, keyBytes: [UInt8]? = nil, tags: [[UInt8]] = []) {
        self.kind = kind
        self.keyBytes = keyBytes
        self.tags = tags
    }
}

extension CacheChange: CustomStringConvertible {
    /// For example `stored reader:1`.
    public var description: String {
        let names = (keyBytes.map { [$0] } ?? tags).map { printableKey($0) }
        return ([kind.rawValue] + names).joined(separator: " ")
    }
}

/// A change with the value that was read when it was taken: see ``DecodedChanges``. A value.
public struct DecodedChange<Value: Sendable>: Sendable {
    /// What happened.
    public let change: CacheChange
    private let result: Result<Value?, any Error>

    package init(_ change: CacheChange, _ result: Result<Value?, any Error>) {
        self.change = change
        self.result = result
    }

    /// What happened.
    public var kind: CacheChange.Kind { change.kind }
    /// The key as text: see ``CacheChange/key``.
    public var key: String? { change.key }

    /// The newest value of the key; nil if there is none any more, which a further change tells, and for changes other
    /// than ``CacheChange/Kind/stored``.
    /// - Throws: what the cache's `value(forKey:)` throws, for a value of another type too. The sequence goes on.
    public var value: Value? {
        get throws { try result.get() }
    }
}
