import LarderEngine

/// An entry of an ``EntrySequence``.
///
/// It was fresh when the enumeration reached it, unless expired entries are included. Its key can be read at any time.
/// In a synchronous enumeration, its value and its other properties can be read only until the next step; afterwards
/// they throw ``LarderError/Code/invalidArgument``. In an asynchronous enumeration, everything can be read at any time.
/// Single owner: use it on one thread at a time.
public struct CacheEntry<Value: Decodable> {
    enum Content {
        /// The entry at the cursor of a synchronous run. It is valid while the iterator's position is still `position`.
        case current(EntryIterator<Value>, position: Int)
        case copied(CopiedEntry<Value>)
    }

    /// Returns whether to include an entry.
    typealias Filter = (CacheEntry<Value>) throws -> Bool

    let content: Content
    let storedKey: Key

    /// The key as text. Bytes that are not UTF-8 appear as U+FFFD; use ``keyBytes`` for such keys.
    public var key: String { String(decoding: storedKey.bytes, as: UTF8.self) }

    /// The key's bytes.
    public var keyBytes: [UInt8] { Array(storedKey.bytes) }

    /// Returns the model. The first call reads and decodes it.
    /// - Throws: ``LarderError/Code/decoding`` if the value is of another type, independent of
    ///   ``CacheOptions/onDecodingFailure``.
    public func value() throws(LarderError) -> Value {
        switch content {
        case .current(let iterator, let position): try iterator.value(at: position, storedKey)
        case .copied(let entry): try entry.value(storedKey)
        }
    }

    /// Returns the stored bytes, whatever their codec.
    public func bytes() throws(LarderError) -> [UInt8] {
        switch content {
        case .current(let iterator, let position): Array(try iterator.record(at: position, storedKey).payload)
        case .copied(let entry): Array(entry.record.payload)
        }
    }

    /// Returns the metadata of the entry: the time at which it was stored, its age, its deadline. Does not read the
    /// value.
    public func info() throws(LarderError) -> EntryInfo {
        switch content {
        case .current(let iterator, let position): try iterator.info(at: position, storedKey)
        case .copied(let entry): entry.info
        }
    }

    var text: String? { String(validating: storedKey.bytes, as: UTF8.self) }

    /// The key as text.
    /// - Throws: ``LarderError/Code/decoding`` if it is not UTF-8.
    private func textKey() throws(LarderError) -> String {
        guard let text else {
            throw LarderError(
                .decoding, "the key is not UTF-8, so it cannot be a String; enumerate gives its bytes",
                operation: "enumerate", database: databaseName, key: storedKey.description)
        }
        return text
    }

    /// Like ``value()``, but returns nil if decoding fails and ``CacheOptions/onDecodingFailure`` treats that as a
    /// miss.
    func valueIfAny() throws(LarderError) -> Value? {
        switch content {
        case .current(let iterator, let position): try iterator.valueIfAny(at: position, storedKey)
        case .copied(let entry): try entry.valueIfAny(storedKey)
        }
    }

    /// Adds the model to a dictionary, unless decoding fails and that counts as a miss.
    func add(to dictionary: inout [String: Value]) throws(LarderError) {
        guard let value = try valueIfAny() else { return }
        guard dictionary.updateValue(value, forKey: try textKey()) == nil else {
            throw LarderError(
                .decoding, "Swift treats this key as equal to another one with different bytes; use enumerate",
                operation: "enumerate", database: databaseName, key: storedKey.description)
        }
    }

    private var databaseName: String {
        switch content {
        case .current(let iterator, _): iterator.databaseName
        case .copied(let entry): entry.source.database.name
        }
    }
}

/// An entry that an asynchronous enumeration has read ahead. Single owner: used by one thread at a time.
final class CopiedEntry<Value: Decodable> {
    let source: CacheSource
    let record: Record
    let info: EntryInfo
    private var decoded: Value?

    init(_ source: CacheSource, _ record: Record, _ info: EntryInfo) {
        (self.source, self.record, self.info) = (source, record, info)
    }

    func value(_ key: Key) throws(LarderError) -> Value {
        if let decoded { return decoded }
        let value = try source.decodeOrThrow(Value.self, record, key)
        decoded = value
        return value
    }

    func valueIfAny(_ key: Key) throws(LarderError) -> Value? {
        if let decoded { return decoded }
        decoded = try source.decode(Value.self, record, key)
        return decoded
    }
}
