import LarderEngine

/// A pending write, as stored in the companion database under its key.
///
/// The first byte is the kind: 1 for a stored value and 2 for a removed key, both without a token; 3 and 4 for the same
/// with a token. Then follow three big-endian numbers of eight bytes: the write's number, the time when it was
/// accepted, and the time when the value expires (0: never). Both times are in milliseconds since 1970. A token of 16
/// bytes and one byte for the value's codec follow if the kind has a token. The remaining bytes are the value.
package struct OutboxEntry: Sendable {
    /// The number of the write, which increases with each write of the database. Only a key's last write is delivered.
    package let number: UInt64
    /// When the write was accepted, in milliseconds since 1970.
    package let acceptedAt: Int64
    /// When the value expires, in milliseconds since 1970; nil for never.
    package let until: Int64?
    /// The value; nil for a removal.
    package let value: [UInt8]?
    /// A random token of 16 bytes that identifies this write in all its delivery attempts; nil for writes without a
    /// token.
    package let token: [UInt8]?
    /// The codec of the value; `raw` for writes without a token.
    package let codec: Codec

    private static let headCount = 25
    private static let tokenCount = 16

    package init(
        number: UInt64, acceptedAt: Int64, until: Int64?, value: [UInt8]?, token: [UInt8]? = nil, codec: Codec = .raw
    ) {
        self.number = number
        self.acceptedAt = acceptedAt
        self.until = until
        self.value = value
        self.token = token
        self.codec = codec
    }

    /// Returns a random token for a new write.
    package static func makeToken() -> [UInt8] { (0..<tokenCount).map { _ in UInt8.random(in: 0...255) } }

    /// Parses an entry; nil for malformed bytes.
    package init?(parsing bytes: UnsafeRawBufferPointer) {
        guard bytes.count >= Self.headCount, (1...4).contains(bytes[0]) else { return nil }
        let hasToken = bytes[0] > 2
        let headCount = Self.headCount + (hasToken ? Self.tokenCount + 1 : 0)
        guard bytes.count >= headCount else { return nil }
        func number(_ offset: Int) -> UInt64 {
            UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
        }
        self.number = number(1)
        acceptedAt = Int64(bitPattern: number(9))
        let until = Int64(bitPattern: number(17))
        self.until = until == 0 ? nil : until
        value = bytes[0] % 2 == 1 ? Array(bytes.dropFirst(headCount)) : nil
        token = hasToken ? Array(bytes[Self.headCount..<headCount - 1]) : nil
        codec = hasToken ? Codec(rawValue: bytes[headCount - 1]) : .raw
    }

    package var bytes: [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(Self.headCount + Self.tokenCount + 1 + (value?.count ?? 0))
        bytes.append((value == nil ? 2 : 1) + (token == nil ? 0 : 2))
        for part in [number, UInt64(bitPattern: acceptedAt), UInt64(bitPattern: until ?? 0)] {
            withUnsafeBytes(of: part.bigEndian) { bytes.append(contentsOf: $0) }
        }
        if let token { bytes += token + [codec.rawValue] }
        if let value { bytes += value }
        return bytes
    }

    /// Whether the value has expired. If so, the removal of the key is delivered instead of the value.
    package func isOver(now: Int64) -> Bool { until.map { $0 <= now } ?? false }
}
