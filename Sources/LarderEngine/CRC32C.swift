import CCRC32C

/// CRC-32C (Castagnoli, polynomial 0x1EDC6F41, as in RFC 3720 appendix B.4), for the engine's own files.
package enum CRC32C {
    package static func checksum(_ bytes: UnsafeRawBufferPointer) -> UInt32 { extend(0, bytes) }

    package static func checksum(_ bytes: some Sequence<UInt8>) -> UInt32 {
        bytes.withContiguousStorageIfAvailable { checksum(UnsafeRawBufferPointer($0)) }
            ?? Array(bytes).withUnsafeBytes { checksum($0) }
    }

    /// The checksum of bytes whose beginning has the checksum `checksum` (0 for nothing) and that go on with `bytes`.
    package static func extend(_ checksum: UInt32, _ bytes: UnsafeRawBufferPointer) -> UInt32 {
        larder_crc32c_extend(checksum, bytes.baseAddress, bytes.count)
    }
}
