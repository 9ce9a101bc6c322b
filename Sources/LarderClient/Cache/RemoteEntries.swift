// Enumeration of the entries of a database.

/// An entry of ``RemoteEntries``. A value type.
public struct RemoteEntry<Value: Sendable>: Sendable {
    /// The key's bytes.
    public let keyBytes: [UInt8]
    /// The model.
    public let value: Value

    /// The key as text. Bytes that are not UTF-8 appear as U+FFFD; use ``keyBytes`` for such keys.
    public var key: String { String(decoding: keyBytes, as: UTF8.self) }
}

/// The fresh entries of a database, with keys and models, read lazily: a few hundred keys and 32 values at a time.
///
/// ```swift
/// for try await entry in readers.entries(matching: "reader:*") { print(entry.key, entry.value.userName) }
/// ```
///
/// Includes every entry that exists during the whole iteration; entries stored or removed meanwhile may be missing.
/// Does not use the near cache. larderd returns each entry once, in the order of the keys' bytes; Redis may return an
/// entry more than once. Each iteration starts from the beginning.
///
/// Thread-safe: a value type with a reference to the client. An iterator belongs to one task.
public struct RemoteEntries<Value: Codable & Sendable>: AsyncSequence, Sendable {
    public typealias Element = RemoteEntry<Value>
    public typealias Failure = LarderClientError

    let cache: RemoteCache<Value>
    let pattern: [UInt8]?

    public func makeAsyncIterator() -> Iterator { Iterator(cache: cache, pattern: pattern) }

    /// An iteration over the entries. Belongs to one task.
    public struct Iterator: AsyncIteratorProtocol {
        let cache: RemoteCache<Value>
        private var keys: RemoteKeyBytes.Iterator
        private var found: ArraySlice<(key: [UInt8], value: [UInt8]?)> = []
        private var isOver = false

        init(cache: RemoteCache<Value>, pattern: [UInt8]?) {
            self.cache = cache
            keys = RemoteKeyBytes.Iterator(store: cache.store, pattern: pattern)
        }

        /// Returns the next entry; nil at the end.
        /// - Throws: errors of the client's calls, and `decode` if a value is of another type. The iteration ends after
        ///   an error.
        public mutating func next() async throws(LarderClientError) -> Element? {
            guard !isOver else { return nil }
            isOver = true
            while true {
                while let (key, bytes) = found.popFirst() {
                    // Skip entries that have been removed in the meantime.
                    guard let value = try await cache.decoded(bytes, key) else { continue }
                    isOver = false
                    return RemoteEntry(keyBytes: key, value: value)
                }
                // Read only a few at a time, because values may be large.
                let some = Array(try await keys.nextKeys(most: 32))
                if some.isEmpty { return nil }
                found = zip(some, try await cache.store.perform(.getAll(some))).map { (key: $0, value: $1) }[...]
            }
        }

        public mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws(LarderClientError) -> Element? { try await next() }
    }
}

extension RemoteCache {
    /// Returns the database's fresh entries as a sequence: see ``RemoteEntries``.
    /// - Parameter pattern: as for ``allKeys(matching:)``.
    public func entries(matching pattern: String? = nil) -> RemoteEntries<Value> {
        RemoteEntries(cache: self, pattern: pattern.map(\.keyBytes))
    }
}
