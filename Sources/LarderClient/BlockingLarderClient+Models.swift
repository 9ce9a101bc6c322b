// Codable models.

extension BlockingLarderClient {
    /// Stores a model as JSON: the same bytes that the Larder library writes by default, which other programs can
    /// read.
    /// - Parameters:
    ///   - key: the entry's name; an entry of that name is replaced, with its deadline.
    ///   - policy: how long this entry stays fresh; nil leaves it to the database's policy.
    /// - Throws: `encode` when the model cannot be written as JSON.
    public func set(_ value: some Encodable, forKey key: String, policy: UpdatePolicy? = nil)
        throws(LarderClientError)
    {
        let bytes = try ModelCoding.encode(value, key: key)
        try store(bytes, forKey: Array(key.utf8), policy: policy, codec: .json)
    }

    /// The model of a fresh entry; nil when there is none.
    /// - Throws: `decode`, naming the type and the key, when the entry's value is not such a model in JSON.
    public func value<Model: Decodable>(_ type: Model.Type, forKey key: String) throws(LarderClientError) -> Model? {
        guard let bytes = try bytes(forKey: key) else { return nil }
        return try ModelCoding.decode(type, from: bytes, key: key)
    }

    /// The models of those keys that have a fresh entry, read at one instant.
    /// - Throws: `decode`, naming the type and the key, when an entry's value is not such a model in JSON.
    public func values<Model: Decodable>(_ type: Model.Type, forKeys keys: some Sequence<String>)
        throws(LarderClientError) -> [String: Model]
    {
        let keys = Array(keys)
        guard !keys.isEmpty else { return [:] }
        var models: [String: Model] = [:]
        for (key, bytes) in zip(keys, try perform(.getAll(keys.map { Array($0.utf8) }))) {
            if let bytes { models[key] = try ModelCoding.decode(type, from: bytes, key: key) }
        }
        return models
    }
}
