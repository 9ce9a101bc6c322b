import LarderLevelDBFormat

/// Reads a batch: a sequence (8 bytes), a count (4 bytes), and the puts and deletes. Each put or delete has a byte for
/// its kind, the key, and for a put the value; key and value are preceded by their lengths.
struct BatchScanner {
    /// A put, or a delete, which has no value.
    typealias Entry = (key: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer?)

    static let headerBytes = 12
    /// Sequences have 56 bits.
    static let sequenceMax: UInt64 = (1 << 56) - 1

    struct Header {
        let sequence: UInt64
        let count: UInt64
        /// The sequence of the first entry of the next batch.
        var next: UInt64 { sequence + count }
    }

    private(set) var scanner: Scanner

    /// - Parameter offset: the offset at which an entry begins.
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

    /// Reads the next entry. Returns nil, and consumes nothing, if no complete entry begins here.
    mutating func next() -> Entry? {
        var trial = scanner
        guard let kind = trial.byte(), kind <= 1, let key = trial.prefixed() else { return nil }
        let value = kind == InternalKey.value ? trial.prefixed() : nil
        if kind == InternalKey.value, value == nil { return nil }
        scanner = trial
        return (key, value)
    }

    /// Returns the key of an incomplete put at the end of the bytes, and the offset at which the complete put would
    /// end; nil if its key or length cannot be read.
    func cutEntry() -> (key: [UInt8], end: Int)? {
        var trial = scanner
        guard let kind = trial.byte(), kind == InternalKey.value, let key = trial.prefixed(), let count = trial.length()
        else { return nil }
        let (end, overflows) = trial.offset.addingReportingOverflow(count)
        return overflows ? nil : (Array(key), end)
    }
}
