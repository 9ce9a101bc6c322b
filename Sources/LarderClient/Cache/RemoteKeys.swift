// Enumeration of the keys of a database.

/// The keys of a database's fresh entries, read lazily: a few hundred keys in each round trip. So listing a database of
/// any size needs little memory.
///
/// ```swift
/// for try await key in readers.allKeys(matching: "reader:*") { print(key) }
/// ```
///
/// Includes every key that exists during the whole iteration; keys stored or removed meanwhile may be missing. larderd
/// returns each key once, in byte order; Redis may return a key more than once. Each iteration starts anew.
///
/// Keys that are not UTF-8 are omitted; ``bytes`` has all keys.
///
/// Thread-safe: a value type with a reference to the client. An iterator belongs to one task.
public struct RemoteKeys: AsyncSequence, Sendable {
    public typealias Element = String
    public typealias Failure = LarderClientError

    /// All keys as bytes, including those that are not UTF-8.
    public let bytes: RemoteKeyBytes

    public func makeAsyncIterator() -> Iterator { Iterator(bytes: bytes.makeAsyncIterator()) }

    /// An iteration over the keys. Belongs to one task.
    public struct Iterator: AsyncIteratorProtocol {
        var bytes: RemoteKeyBytes.Iterator

        /// - Throws: errors of the client's calls; the iteration is over afterwards.
        public mutating func next() async throws(LarderClientError) -> String? {
            while let key = try await bytes.next() {
                if let text = ScanStep.text(key) { return text }
            }
            return nil
        }

        public mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws(LarderClientError) -> String? { try await next() }
    }
}

/// The keys of a database's fresh entries as bytes, read like ``RemoteKeys``, including keys that are not UTF-8.
///
/// Thread-safe: a value type with a reference to the client. An iterator belongs to one task.
public struct RemoteKeyBytes: AsyncSequence, Sendable {
    public typealias Element = [UInt8]
    public typealias Failure = LarderClientError

    let store: DatabaseStore
    let pattern: [UInt8]?

    public func makeAsyncIterator() -> Iterator { Iterator(store: store, pattern: pattern) }

    /// An iteration over the keys. Belongs to one task.
    public struct Iterator: AsyncIteratorProtocol {
        let store: DatabaseStore
        private var keys: ArraySlice<[UInt8]> = []
        /// The next request; nil at the end.
        private var nextRequest: Request<ScanStep>?

        init(store: DatabaseStore, pattern: [UInt8]?) {
            self.store = store
            nextRequest = .scan(matching: pattern)
        }

        /// - Throws: errors of the client's calls; the iteration is over afterwards.
        public mutating func next() async throws(LarderClientError) -> [UInt8]? { try await nextKeys(most: 1).first }

        /// Returns the next keys, at most `most` of them; none at the end.
        mutating func nextKeys(most: Int) async throws(LarderClientError) -> ArraySlice<[UInt8]> {
            while keys.isEmpty, let request = nextRequest {
                // If this throws, the iteration is over.
                nextRequest = nil
                let step = try await store.perform(request)
                keys = step.keys[...]
                nextRequest = step.next
            }
            defer { keys = keys.dropFirst(most) }
            return keys.prefix(most)
        }

        public mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws(LarderClientError) -> [UInt8]? { try await next() }
    }
}

extension RemoteCache {
    /// Returns the keys of the database's fresh entries as a sequence: see ``RemoteKeys``. ``keys(matching:)`` returns
    /// an array of all keys.
    /// - Parameter pattern: a glob pattern: `*` matches any characters, `?` one character, `[a-c]` one of a, b and c;
    ///   nil for all keys.
    public func allKeys(matching pattern: String? = nil) -> RemoteKeys {
        RemoteKeys(bytes: RemoteKeyBytes(store: store, pattern: pattern.map(\.keyBytes)))
    }
}
