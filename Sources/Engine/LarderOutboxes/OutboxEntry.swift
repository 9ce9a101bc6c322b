import LarderEngine

/// A write that waits to be brought, as it stands in the companion database under the key that it concerns.
///
/// The bytes: one for what it is (1: a value is stored, 2: the entry is removed; 3 and 4: the same with a token); then, each
/// in eight bytes, the highest first: its number, when it was accepted, and until when the value lives (0: without end), both
/// in milliseconds since 1970; with a token its 16 bytes, and one for the value's codec; then the value.
package struct OutboxEntry: Sendable {
    /// Grows with each write of the database; a key's last write counts.
    package let number: UInt64
    package let acceptedAt: Int64
    /// Nil: without end.
    package let until: Int64?
    /// Nil: the entry is removed.
    package let value: [UInt8]?
    /// The same for all attempts to bring this write, and no other write's; nil for writes that have none.
    package let token: [UInt8]?
    /// Of the value; `raw` for writes without a token.
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

    /// A token that no other write has.
    package static func makeToken() -> [UInt8] { (0..<tokenCount).map { _ in UInt8.random(in: 0...255) } }

    /// Nil for bytes that are none.
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

    /// Whether the value's life is over, so that its removal is what is left to be brought.
    package func isOver(now: Int64) -> Bool { until.map { $0 <= now } ?? false }
}
