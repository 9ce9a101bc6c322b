import LarderEngine

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
