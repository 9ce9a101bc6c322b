// Several writes in one step.

extension BlockingLarderClient {
    /// Writes that happen all or not at all: entries to set, or keys to remove.
    ///
    /// The daemon can so far do either in one step, not both together, and an entry of a batch cannot have a policy
    /// of its own: a batch that asks for both is refused before anything is sent.
    ///
    /// Nor can the values of a batch of more than one entry be marked with their codec. Models in it are stored as the
    /// same JSON, and both ``BlockingLarderClient/value(_:forKey:)`` and the Larder library read them; only META calls them
    /// raw.
    ///
    /// Not thread-safe: fill it from one thread at a time.
    public struct Batch {
        private(set) var sets: [(key: String, value: [UInt8], codec: LarderClient.EntryInfo.Codec?)] = []
        private(set) var removals: [String] = []

        /// Adds a model, stored as JSON. Of two values for one key the later one holds.
        public mutating func set(_ value: some Encodable, forKey key: String) throws(LarderClientError) {
            sets.append((key, try ModelCoding.encode(value, key: key), .json))
        }

        /// Adds bytes. Of two values for one key the later one holds.
        public mutating func setBytes(_ bytes: [UInt8], forKey key: String) {
            sets.append((key, bytes, nil))
        }

        /// Adds keys to remove.
        public mutating func remove(_ keys: String...) {
            removals += keys
        }
    }

    /// Carries out what `body` puts into the batch: all of it or, if `body` or the daemon fails, nothing.
    ///
    /// Other clients see none of it or all of it. A batch into which nothing was put sends nothing.
    /// - Throws: `invalidArgument` when the batch holds both entries to set and keys to remove; what `body` throws.
    public func batch(_ body: (inout Batch) throws -> Void) throws {
        var batch = Batch()
        try body(&batch)
        try apply(batch)
    }

    /// Stores models, all in one step. Of two values for one key the later one holds. See ``Batch`` about their codec.
    public func setMany(_ models: some Sequence<(key: String, value: some Encodable)>) throws(LarderClientError) {
        var batch = Batch()
        for (key, value) in models { try batch.set(value, forKey: key) }
        try apply(batch)
    }

    private func apply(_ batch: Batch) throws(LarderClientError) {
        guard batch.sets.isEmpty || batch.removals.isEmpty else {
            throw LarderClientError(
                .invalidArgument,
                "a batch either sets entries or removes some: the daemon cannot yet do both in one step",
                operation: "batch")
        }
        if let only = batch.sets.first, batch.sets.count == 1 {
            try store(only.value, forKey: Array(only.key.utf8), policy: nil, codec: only.codec)
        } else if !batch.sets.isEmpty {
            try perform(.setAll(batch.sets.map { (Array($0.key.utf8), $0.value) }))
        }
        try removeMany(batch.removals)
    }
}
