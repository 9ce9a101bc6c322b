// Codable models.

extension BlockingLarderClient {
    /// Stores a model as the client's codec writes it, by default as JSON: the same bytes that the Larder library writes,
    /// which other programs can read.
    /// - Parameters:
    ///   - key: the entry's name; an entry of that name is replaced, with its deadline.
    ///   - policy: how long this entry stays fresh. The default leaves it to the database's policy.
    /// - Throws: `encode` when the codec cannot write the model.
    public func set(_ value: some Encodable, forKey key: String, policy: EntryPolicy = .database)
        throws(LarderClientError)
    {
        let key = Array(key.utf8)
        let (bytes, codec) = try RemoteCoding.encode(value, codec, key: key)
        try store(bytes, forKey: key, policy: policy, codec: codec)
    }

    /// The model of a fresh entry; nil when there is none.
    /// - Throws: `decode`, naming the type and the key, when the entry's value is not such a model.
    public func value<Model: Decodable>(_ type: Model.Type, forKey key: String) throws(LarderClientError) -> Model? {
        let key = Array(key.utf8)
        guard let bytes = try bytes(forKey: key) else { return nil }
        return try decoded(type, bytes, key)
    }

    /// The models of those keys that have a fresh entry, read at one instant.
    /// - Throws: `decode`, naming the type and the key, when an entry's value is not such a model.
    public func values<Model: Decodable>(_ type: Model.Type, forKeys keys: some Sequence<String>)
        throws(LarderClientError) -> [String: Model]
    {
        let keys = Array(keys)
        guard !keys.isEmpty else {
            _ = try session.perform([], operation: "MGET")
            return [:]
        }
        var models: [String: Model] = [:]
        for (key, bytes) in zip(keys, try perform(.getAll(keys.map { Array($0.utf8) }))) {
            if let bytes { models[key] = try decoded(type, bytes, Array(key.utf8)) }
        }
        return models
    }

    /// The model in stored bytes. Asks the daemon for the entry's codec where the likely one fails.
    private func decoded<Model: Decodable>(_ type: Model.Type, _ bytes: [UInt8], _ key: [UInt8])
        throws(LarderClientError) -> Model
    {
        try RemoteCoding.decodeBlocking(type, from: bytes, codec, key: key) { () throws(LarderClientError) in
            guard try server().isLarder else { return .raw }
            return try info(forKey: key)?.storedCodec
        }
    }
}
