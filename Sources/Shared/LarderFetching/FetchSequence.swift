/// A sequence of up to two values of a key: the cached value, and then the value fetched from the origin.
///
/// The cache is read when the iteration begins. Each iteration reads and fetches again. For one task at a time.
public struct FetchSequence<Value: Sendable>: AsyncSequence, Sendable {
    public typealias Element = Value

    private let cached: @Sendable () async throws -> Value?
    private let fetched: @Sendable () async throws -> Value?
    /// Returns whether the second value equals the first, and is therefore omitted.
    private let isRepetition: @Sendable (Value, Value) -> Bool

    package init(
        cached: @escaping @Sendable () async throws -> Value?, fetched: @escaping @Sendable () async throws -> Value?,
        isRepetition: @escaping @Sendable (Value, Value) -> Bool
    ) {
        self.cached = cached
        self.fetched = fetched
        self.isRepetition = isRepetition
    }

    /// Returns the cached value, fresh or stale, if there is one, and then the fetched value. Throws an error of the
    /// origin after the cached value.
    public struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate let sequence: FetchSequence
        private var step = 0
        private var first: Value?

        fileprivate init(_ sequence: FetchSequence) { self.sequence = sequence }

        /// Returns the next value; nil after the second value, or if the origin has no value or returns an equal one.
        public mutating func next() async throws -> Value? {
            if step == 0 {
                step = 1
                if let value = try await sequence.cached() {
                    first = value
                    return value
                }
            }
            guard step == 1 else { return nil }
            step = 2
            guard let value = try await sequence.fetched() else { return nil }
            if let first, sequence.isRepetition(first, value) { return nil }
            return value
        }
    }

    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(self) }
}
