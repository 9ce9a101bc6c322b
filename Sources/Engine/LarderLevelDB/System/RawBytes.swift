// Converts Swift's raw buffers to the arguments of LevelDB's C functions: a pointer to char, never null, and a length.

extension UnsafeRawBufferPointer {
    /// The address of the first byte; for an empty buffer the address of an unused byte, because LevelDB's C functions
    /// do not allow null.
    @inline(__always)
    var characters: UnsafePointer<CChar> {
        guard let baseAddress else { return UnsafePointer(NoBytes.shared.byte) }
        return baseAddress.assumingMemoryBound(to: CChar.self)
    }
}

/// The owner of the byte to which `characters` of an empty buffer points. `@unchecked Sendable`: the byte is never
/// written after `init`.
private struct NoBytes: @unchecked Sendable {
    static let shared = NoBytes()
    let byte: UnsafeMutablePointer<CChar>

    private init() {
        byte = .allocate(capacity: 1)
        byte.initialize(to: 0)
    }
}

extension [UInt8] {
    /// `withUnsafeBytes` with a typed error.
    @inlinable func withRawBytes<Result, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try withUnsafeBufferPointer { (bytes) throws(Failure) in try body(UnsafeRawBufferPointer(bytes)) }
    }
}
