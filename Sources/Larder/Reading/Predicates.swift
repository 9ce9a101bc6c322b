import LarderEngine

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

// Filters with #Predicate. They read and decode every entry. An entry with a value of another type is an error or is
// skipped: see CacheOptions.onDecodingFailure.

extension EntrySequence {
    /// Returns only the entries whose model satisfies the predicate.
    public func filter(_ predicate: Predicate<Value>) -> EntrySequence {
        filter { entry in
            guard let value = try entry.valueIfAny() else { return false }
            return try predicate.evaluate(value)
        }
    }
}

extension CacheReading {
    /// Returns the keys of the models that satisfy the predicate: `try cache.keys(matching: #Predicate<Reader> {
    /// $0.book.price > 10 })`.
    public func keys<Value: Decodable>(
        matching predicate: Predicate<Value>, _ options: EntryOptions = EntryOptions()
    ) throws(LarderError) -> [String] {
        try entries(of: Value.self, options).filter(predicate).keys()
    }

    /// Returns the models that satisfy the predicate, by their keys.
    public func dictionary<Value: Decodable>(
        matching predicate: Predicate<Value>, _ options: EntryOptions = EntryOptions()
    ) throws(LarderError) -> [String: Value] {
        try entries(of: Value.self, options).filter(predicate).dictionary()
    }

    /// Runs ``keys(matching:_:)`` without blocking the calling thread.
    public func keys<Value: Decodable>(
        matching predicate: Predicate<Value>, _ options: EntryOptions = EntryOptions()
    ) async throws(LarderError) -> [String] {
        try await entries(of: Value.self, options).filter(predicate).keys()
    }

    /// Runs ``dictionary(matching:_:)`` without blocking the calling thread.
    public func dictionary<Value: Decodable>(
        matching predicate: Predicate<Value>, _ options: EntryOptions = EntryOptions()
    ) async throws(LarderError) -> [String: Value] {
        try await entries(of: Value.self, options).filter(predicate).dictionary()
    }
}
