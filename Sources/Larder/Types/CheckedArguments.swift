import LarderEngine
import LarderModelCoding

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

extension LarderError {
    /// Returns the same error with the name of the caller's operation instead of the engine's "update" or "get".
    func during(_ operation: String) -> LarderError {
        guard operation != self.operation, self.operation == "update" || self.operation == "get" else { return self }
        return LarderError(
            code, message, operation: operation, database: database, key: key, underlying: underlying)
    }

    /// Returns the error for an invalid argument of a call that changes an entry.
    static func invalid(_ message: String, _ operation: String, _ database: String?, _ key: Key) -> LarderError {
        LarderError(.invalidArgument, message, operation: operation, database: database, key: key.description)
    }

    /// Returns the error for a value that could not be encoded. Its text names types and fields, never values.
    static func encodingFailed(
        _ type: Any.Type, _ codec: Codec, _ key: Key, _ database: String?, _ error: any Error,
        _ operation: String = "set"
    ) -> LarderError {
        LarderError(
            .encoding,
            "the value of type \(type) cannot be stored as \(codec): \(CodingProblem.encoding(error, codec))",
            operation: operation, database: database, key: key.description, underlying: error)
    }

    /// Returns the error for a stored value that is not of the requested type. Its text names types and fields, never
    /// values.
    static func decodingFailed(_ type: Any.Type, _ codec: Codec, _ key: Key, _ database: String, _ error: any Error)
        -> LarderError
    {
        LarderError(
            .decoding, "the value, stored as \(codec), cannot be read as \(type): \(CodingProblem.decoding(error))",
            operation: "get", database: database, key: key.description,
            underlying: CodingProblem.underlying(error))
    }
}

// Without this conformance, Foundation's `localizedDescription` of an error would not contain its `description`.

extension LarderError: LocalizedError {
    /// The error in words, as `description`.
    public var errorDescription: String? { description }
}

// Checks of policies, with errors that describe the allowed values.

/// A validated change of a database's policy.
struct PolicyChange: Sendable {
    let policy: UpdatePolicy
    /// In milliseconds; nil keeps the current grace.
    let grace: Int64?
    /// In percent; nil keeps the current jitter.
    let jitter: Int?

    init(
        _ policy: UpdatePolicy, _ grace: Duration?, _ jitter: Int?, _ operation: String, _ database: String
    ) throws(LarderError) {
        do throws(EntryPolicy.Impossible) {
            self.policy = try policy.checked()
            self.grace = try grace.map { (grace) throws(EntryPolicy.Impossible) in
                try EntryPolicy.checked(grace: grace)
            }
            self.jitter = try jitter.map { (jitter) throws(EntryPolicy.Impossible) in
                try EntryPolicy.checked(jitter: jitter)
            }
        } catch {
            throw LarderError(.invalidArgument, error.message, operation: operation, database: database)
        }
    }
}

// Keys in the engine's form.

extension Key {
    /// Creates the engine's key, and checks its length.
    init(checking key: some CacheKey, _ operation: String, _ database: String?) throws(LarderError) {
        let made: Key? = key.withKeyBytes { $0.count <= Key.bytesMax ? Key($0) : nil }
        guard let made else {
            let count = key.withKeyBytes { $0.count }
            let start = key.withKeyBytes { Array($0.prefix(64)) }
            throw LarderError(
                .invalidArgument, "the key has \(count) bytes; the limit is \(Key.bytesMax)",
                operation: operation, database: database, key: printableKey(start) + "…")
        }
        self = made
    }
}
