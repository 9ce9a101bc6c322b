/// A record as ``EntryMemory`` contains it: the payload after a header of 6 to 10 bytes, instead of 16 to 24 as stored
/// in LevelDB and the journal. Only this type reads and writes this form:
///
/// ```
/// offset  bytes  field
///      0      1  form: bits 0-1 rule (0 governed by the policy, 1 own deadline, 2 own never, 3 as stored),
///                2-3 codec (0 to 2 as stored, 3 for 255),
///                4-5 the lifetime's unit (0 ms, 1 s, 2 min, 3 h), 6-7 its length in bytes, minus 1
///      1      5  storedAt, milliseconds since 2020, little-endian
///      6    1-4  lifetime (deadline - storedAt) in units, little-endian; only if the rule is "own deadline"
///                the payload
/// ```
///
/// With the rule "as stored", the record follows the form as stored, byte for byte. This is used for headers that do
/// not fit the fields above, such as those with tags, and for records that may be pinned (``EntryPointer/pin()``),
/// because a checkpoint passes them to LevelDB without copying them.
struct PackedRecord {
    private enum Content {
        /// The form and `storedAt` in 48 bits, and the lifetime.
        case packed(start: UInt64, lifetime: UInt32, lifetimeCount: Int, payload: UnsafeRawBufferPointer)
        case stored(UnsafeRawBufferPointer)
        /// A record to be written as stored.
        case view(RecordView)
    }

    private let content: Content

    /// - Parameter storedFrom: the length from which records are contained as stored.
    init(_ record: RecordView, storedFrom bytesMin: Int) {
        content = (record.byteCount < bytesMin ? Self.pack(record) : nil) ?? .view(record)
    }

    /// - Parameter stored: a record as stored, which need not be valid.
    init(stored: UnsafeRawBufferPointer, storedFrom bytesMin: Int) {
        content = (stored.count < bytesMin ? Self.pack(stored) : nil) ?? .stored(stored)
    }

    /// The number of bytes that ``write(to:)`` writes.
    var byteCount: Int {
        switch content {
        case .packed(_, _, let lifetimeCount, let payload): Self.startCount + lifetimeCount + payload.count
        case .stored(let bytes): 1 + bytes.count
        case .view(let record): 1 + record.byteCount
        }
    }

    func write(to place: UnsafeMutableRawPointer) {
        switch content {
        case .packed(let start, let lifetime, let lifetimeCount, let payload):
            let headerCount = Self.startCount + lifetimeCount
            if lifetimeCount > 0 {
                // The first bytes of these four are overwritten next.
                (place + headerCount - 4).storeBytes(of: lifetime << (32 - 8 * lifetimeCount), as: UInt32.self)
            }
            place.storeBytes(of: UInt32(truncatingIfNeeded: start), as: UInt32.self)
            place.storeBytes(of: UInt16(truncatingIfNeeded: start >> 32), toByteOffset: 4, as: UInt16.self)
            if let bytes = payload.baseAddress {
                (place + headerCount).copyMemory(from: bytes, byteCount: payload.count)
            }
        case .stored(let bytes):
            let space = Self.beginStored(at: place)
            if let start = bytes.baseAddress { space.copyMemory(from: start, byteCount: bytes.count) }
        case .view(let record): record.write(to: Self.beginStored(at: place))
        }
    }

    /// Writes the form of a record that is contained as stored.
    /// - Returns: the address for the stored record.
    static func beginStored(at place: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer {
        place.storeBytes(of: UInt8(storedRule), as: UInt8.self)
        return place + 1
    }

    // MARK: Packing

    private static let startCount = 6
    private static let ownRule: UInt64 = 1
    private static let storedRule: UInt64 = 3
    /// The beginning of the year 2020, in milliseconds since 1970. 40 bits last until 2054.
    private static let epoch: UInt64 = 1_577_836_800_000
    private static let timeLimit: UInt64 = 1 << 40

    @inline(__always)
    private static func pack(_ record: RecordView) -> Content? {
        let header = record.header
        guard header.grace == nil, !header.hasTags, header.generation == 0 else { return nil }
        let rule: (UInt64, deadline: Int64) =
            switch header.rule {
            case .governed: (0, 0)
            case .own(let deadline): (ownRule, deadline)
            case .ownNever: (2, 0)
            }
        return pack(
            rule.0, header.codec.rawValue, storedAt: UInt64(max(0, header.storedAt)),
            deadline: UInt64(max(0, rule.deadline)), record.tail)
    }

    private static func pack(_ stored: UnsafeRawBufferPointer) -> Content? {
        guard stored.count >= 16 else { return nil }
        // Version 1, no flags but the rule, no reserved bits, and generation 0: see RecordHeader.
        let start = UInt64(bigEndian: stored.loadUnaligned(as: UInt64.self))
        let rule = start >> 48 & 3
        guard start & ~(3 << 48 | 0xFF << 40) == 1 << 56, rule < storedRule else { return nil }
        let headerCount = rule == ownRule ? 24 : 16
        guard let storedAt = BigEndian.read(stored, at: 8), stored.count >= headerCount else { return nil }
        return pack(
            rule, UInt8(truncatingIfNeeded: start >> 40), storedAt: storedAt,
            deadline: rule == ownRule ? BigEndian.read(stored, at: 16) ?? 0 : 0,
            UnsafeRawBufferPointer(rebasing: stored[headerCount...]))
    }

    /// - Returns: nil if the fields have no room for the values.
    @inline(__always)
    private static func pack(
        _ rule: UInt64, _ codec: UInt8, storedAt: UInt64, deadline: UInt64, _ payload: UnsafeRawBufferPointer
    ) -> Content? {
        let time = storedAt &- epoch
        guard time < timeLimit, codec < 3 || codec == 255 else { return nil }
        let start = rule | UInt64(min(codec, 3)) << 2 | time << 8
        guard rule == ownRule else { return .packed(start: start, lifetime: 0, lifetimeCount: 0, payload: payload) }
        guard deadline >= storedAt else { return nil }
        var (lifetime, unit) = (deadline - storedAt, UInt64(0))
        while unit < 3 {
            let step: UInt64 = unit == 0 ? 1000 : 60
            guard lifetime % step == 0 else { break }
            lifetime /= step
            unit += 1
        }
        guard let lifetime = UInt32(exactly: lifetime) else { return nil }
        let lifetimeCount = max(1, (39 - lifetime.leadingZeroBitCount) / 8)
        let form = unit << 4 | UInt64(lifetimeCount - 1) << 6
        return .packed(start: start | form, lifetime: lifetime, lifetimeCount: lifetimeCount, payload: payload)
    }

    // MARK: Reading

    /// Reads a record that ``write(to:)`` has written.
    /// - Parameter purges: see ``RecordHeader/init(parsing:_:)``.
    @inline(__always)
    static func read(_ bytes: UnsafeRawBufferPointer, _ purges: TagPurges?) throws(RecordHeader.Defect) -> RecordView {
        if let stored = stored(bytes) { return try RecordView(parsing: stored, purges) }
        return unpack(bytes)
    }

    /// The record in `bytes` if it is contained as stored, otherwise nil.
    static func stored(_ bytes: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? {
        UInt64(bytes[0]) & 3 == storedRule ? UnsafeRawBufferPointer(rebasing: bytes[1...]) : nil
    }

    /// Appends the record in `bytes`, as stored, to an array.
    static func appendStored(_ bytes: UnsafeRawBufferPointer, to array: inout [UInt8]) {
        if let stored = stored(bytes) { return array.append(contentsOf: stored) }
        let record = unpack(bytes)
        record.header.append(to: &array)
        array.append(contentsOf: record.tail)
    }

    @inline(__always)
    private static func unpack(_ bytes: UnsafeRawBufferPointer) -> RecordView {
        let start =
            UInt64(bytes.loadUnaligned(as: UInt32.self))
            | UInt64(bytes.loadUnaligned(fromByteOffset: 4, as: UInt16.self)) << 32
        let storedAt = Int64(start >> 8 + epoch)
        let codec = UInt8(truncatingIfNeeded: start >> 2 & 3)
        var headerCount = startCount
        var rule = DeadlineRule.governed
        if start & 3 == ownRule {
            let lifetimeCount = Int(start >> 6 & 3) + 1
            headerCount += lifetimeCount
            let last = bytes.loadUnaligned(fromByteOffset: headerCount - 4, as: UInt32.self)
            let lifetime = Int64(last >> (32 - 8 * lifetimeCount))
            let unit: Int64 =
                switch start >> 4 & 3 {
                case 0: 1
                case 1: 1000
                case 2: 60_000
                default: 3_600_000
                }
            rule = .own(storedAt + lifetime * unit)
        } else if start & 3 != 0 {
            rule = .ownNever
        }
        return RecordView(
            RecordHeader(storedAt: storedAt, rule: rule, codec: Codec(rawValue: codec < 3 ? codec : 255)),
            tail: UnsafeRawBufferPointer(rebasing: bytes[headerCount...]))
    }
}
