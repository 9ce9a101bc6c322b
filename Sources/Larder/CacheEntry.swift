import LarderEngine

/// An entry met while going over an ``EntrySequence``.
///
/// It was fresh when the enumeration came to it, unless expired entries were asked for too. Its key can be kept; its value and its other properties can be asked for until the enumeration takes its next step,
/// and throw ``LarderError/Code/invalidArgument`` afterwards. Single owner, like the run it belongs to.
public struct CacheEntry<Value: Decodable> {
    let iterator: EntryIterator<Value>
    let position: Int
    let storedKey: Key

    /// The key as text. Bytes that are not UTF-8 show as U+FFFD; ``keyBytes`` has them as they are.
    public var key: String { String(decoding: storedKey.bytes, as: UTF8.self) }

    /// The key's bytes.
    public var keyBytes: [UInt8] { Array(storedKey.bytes) }

    /// The model, read and decoded now; asked again, it is not decoded again.
    /// - Throws: ``LarderError/Code/decoding`` when something else is stored there, whatever
    ///   ``CacheOptions/onDecodingFailure`` says.
    public func value() throws(LarderError) -> Value { try iterator.value(at: position, storedKey) }

    /// The stored bytes, whatever codec made them.
    public func bytes() throws(LarderError) -> [UInt8] { Array(try iterator.record(at: position, storedKey).payload) }

    /// When the entry was stored, its age, its deadline; the value is not read.
    public func info() throws(LarderError) -> EntryInfo { try iterator.info(at: position, storedKey) }

    /// The key as text.
    /// - Throws: ``LarderError/Code/decoding`` when it is not UTF-8.
    func textKey() throws(LarderError) -> String {
        guard let text = String(validating: storedKey.bytes, as: UTF8.self) else {
            throw LarderError(
                .decoding, "the key is not UTF-8 and so no String; enumerate shows its bytes", operation: "enumerate",
                database: iterator.databaseName, key: storedKey.description)
        }
        return text
    }

    /// As ``value()``, nil where a failure to decode counts as a miss.
    func valueIfAny() throws(LarderError) -> Value? { try iterator.valueIfAny(at: position, storedKey) }
}
