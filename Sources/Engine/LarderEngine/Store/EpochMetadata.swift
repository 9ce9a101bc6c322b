/// The keys and values of an epoch's metadata records in LevelDB. **On disk: do not change.**
enum EpochMetadata {
    static let formatKey: [UInt8] = [KeyKind.metadata] + Array("format".utf8)
    static let formatVersion: UInt8 = 1
    /// The key of the last commit unit that the journal must contain (8 bytes, big-endian). Only used if the journal is
    /// damaged, to detect that a needed part is lost.
    static let journalKey: [UInt8] = [KeyKind.metadata] + Array("journal".utf8)

    static func journalValue(_ sequence: UInt64) -> [UInt8] {
        var bytes: [UInt8] = []
        BigEndian.append(sequence, to: &bytes)
        return bytes
    }
}
