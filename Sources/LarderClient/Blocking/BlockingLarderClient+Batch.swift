// Several writes in one step.

import RESP

extension BlockingLarderClient {
    /// Writes that happen all or not at all: entries to set, and keys to remove, in the order in which they were added.
    ///
    /// Not thread-safe: fill it from one thread at a time.
    public struct Batch {
        private let codec: ModelCodec
        private(set) var changes: [BatchChange] = []

        init(codec: ModelCodec) { self.codec = codec }

        /// Adds a model, as the client's codec writes it. Of two values for one key the later one holds.
        /// - Parameter policy: how long this entry stays fresh. The default leaves it to the database's policy.
        public mutating func set(_ value: some Encodable, forKey key: String, policy: EntryPolicy = .database)
            throws(LarderClientError)
        {
            let key = Array(key.utf8)
            let (bytes, codec) = try RemoteCoding.encode(value, codec, key: key)
            changes.append(BatchChange(key: key, action: .set(bytes, try policy.checked("SET", key: key), codec)))
        }

        /// Adds bytes. Of two values for one key the later one holds.
        public mutating func setBytes(_ bytes: [UInt8], forKey key: String, policy: EntryPolicy = .database)
            throws(LarderClientError)
        {
            let key = Array(key.utf8)
            try RemoteCoding.check(valueBytes: bytes.count, key: key)
            changes.append(BatchChange(key: key, action: .set(bytes, try policy.checked("SET", key: key), .raw)))
        }

        /// Adds keys to remove.
        public mutating func remove(_ keys: String...) {
            for key in keys { changes.append(BatchChange(key: Array(key.utf8), action: .remove)) }
        }
    }

    /// Carries out what `body` puts into the batch: all of it or, if `body` or the daemon fails, nothing.
    ///
    /// Other clients see none of it or all of it. A batch into which nothing was put sends nothing.
    /// - Throws: what `body` throws.
    public func batch(_ body: (inout Batch) throws -> Void) throws {
        var batch = Batch(codec: codec)
        try body(&batch)
        try apply(batch)
    }

    /// Stores models, all in one step. Of two values for one key the later one holds.
    /// - Parameter policy: how long the entries stay fresh. The default leaves it to the database's policy.
    public func setMany(_ models: some Sequence<(key: String, value: some Encodable)>, policy: EntryPolicy = .database)
        throws(LarderClientError)
    {
        var batch = Batch(codec: codec)
        for (key, value) in models { try batch.set(value, forKey: key, policy: policy) }
        try apply(batch)
    }

    private func apply(_ batch: Batch) throws(LarderClientError) {
        guard !batch.changes.isEmpty else {
            _ = try session.perform([], operation: "batch")
            return
        }
        switch BatchPlan(batch.changes, for: try server()) {
        case .command(let request): try perform(request)
        case .transaction(let commands):
            let replies = try session.perform(
                [wordList("MULTI")] + commands + [wordList("EXEC")], operation: "batch")
            // The first refusal says why; EXEC only says that there was one.
            for reply in replies + (replies.last?.elements ?? []) {
                if let text = reply.errorMessage { throw .server(text, operation: "batch") }
            }
        }
    }
}
