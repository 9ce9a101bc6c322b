/// A put or a delete in a batch.
struct BatchEntry {
    let isPut: Bool
    let key: UnsafeRawBufferPointer
    /// Empty for a delete.
    let value: UnsafeRawBufferPointer
}

/// Reads a batch: a sequence (8 bytes), a count (4), and the puts and deletes, each a kind and one or two byte strings
/// with their lengths.
struct BatchScanner {
    static let headerBytes = 12
    /// Sequences have 56 bits.
    static let sequenceMax: UInt64 = (1 << 56) - 1

    struct Header {
        let sequence: UInt64
        let count: UInt64
        /// The sequence of the next entry.
        var next: UInt64 { sequence + count }
    }

    private(set) var scanner: Scanner

    /// - Parameter offset: where an entry begins.
    init(_ bytes: UnsafeRawBufferPointer, from offset: Int) { scanner = Scanner(bytes, from: offset) }

    static func header(of bytes: UnsafeRawBufferPointer) -> Header? {
        var scanner = Scanner(bytes)
        guard let sequence = scanner.fixed64(), let count = scanner.fixed32(), sequence <= sequenceMax else {
            return nil
        }
        return Header(sequence: sequence, count: UInt64(count))
    }

    var isAtEnd: Bool { scanner.isAtEnd }
    var offset: Int { scanner.offset }

    /// nil if no whole entry begins here; then nothing was consumed.
    mutating func next() -> BatchEntry? {
        var trial = scanner
        guard let kind = trial.byte(), kind <= 1, let key = trial.prefixed() else { return nil }
        guard kind == InternalKey.value else {
            scanner = trial
            return BatchEntry(isPut: false, key: key, value: UnsafeRawBufferPointer(rebasing: key[..<0]))
        }
        guard let value = trial.prefixed() else { return nil }
        scanner = trial
        return BatchEntry(isPut: true, key: key, value: value)
    }

    /// The known facts about an incomplete entry at the end: its key, and its end, if that can be computed.
    func cutEntry() -> (key: [UInt8], end: Int)? {
        var trial = scanner
        guard let kind = trial.byte(), kind == InternalKey.value, let key = trial.prefixed(), let count = trial.length()
        else { return nil }
        let (end, overflows) = trial.offset.addingReportingOverflow(count)
        return overflows ? nil : (Array(key), end)
    }
}
