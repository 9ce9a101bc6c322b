import LarderEngine

/// A write that waits for the origin, as it stands in the companion database under the key that it concerns.
///
/// The bytes: one for what it is (1: a value is stored, 2: the entry is removed); then, each in eight bytes, the highest
/// first: its number, when it was accepted, and until when the value lives (0: without end), both in milliseconds since
/// 1970; then the value.
struct OutboxEntry {
    /// Grows with each write of the database; a key's last write counts.
    let number: UInt64
    let acceptedAt: Int64
    /// Nil: without end.
    let until: Int64?
    /// Nil: the entry is removed.
    let value: [UInt8]?

    static let headCount = 25

    init(number: UInt64, acceptedAt: Int64, until: Int64?, value: [UInt8]?) {
        self.number = number
        self.acceptedAt = acceptedAt
        self.until = until
        self.value = value
    }

    /// Nil for bytes that are none.
    init?(parsing bytes: UnsafeRawBufferPointer) {
        guard bytes.count >= Self.headCount, bytes[0] == 1 || bytes[0] == 2 else { return nil }
        func number(_ offset: Int) -> UInt64 {
            UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
        }
        self.number = number(1)
        acceptedAt = Int64(bitPattern: number(9))
        let until = Int64(bitPattern: number(17))
        self.until = until == 0 ? nil : until
        value = bytes[0] == 1 ? Array(bytes.dropFirst(Self.headCount)) : nil
    }

    var bytes: [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(Self.headCount + (value?.count ?? 0))
        bytes.append(value == nil ? 2 : 1)
        for part in [number, UInt64(bitPattern: acceptedAt), UInt64(bitPattern: until ?? 0)] {
            withUnsafeBytes(of: part.bigEndian) { bytes.append(contentsOf: $0) }
        }
        if let value { bytes += value }
        return bytes
    }

    /// Whether the value's life is over, so that its removal is what is left to be brought.
    func isOver(now: Int64) -> Bool { until.map { $0 <= now } ?? false }
}
