/// The header before the payload of every record. Commands such as TTL, the sweep and inspections read only the header.
///
/// ```
/// offset  bytes  field
///      0      1  version of this layout: 1, or 2 if a flag needs it
///      1      1  flags: bits 0-1 rule (0 governed by the policy, 1 own deadline, 2 own never), bits 3-7 zero;
///                version 2: bit 2 own grace, bit 3 tags
///      2      1  codec of the payload
///      3      1  zero
///      4      4  purge generation, big-endian
///      8      8  storedAt, milliseconds since 1970, big-endian
///     16      8  deadline, milliseconds since 1970, big-endian; only if the rule is "own deadline"
///              8  grace, milliseconds, big-endian; only with "own grace"
///              8  stamp: the last sequence before the entry was stored, big-endian; only with "tags"
///              1  number of tags, from 1 on; only with "tags"; then for each its length (1) and its bytes
/// ```
package struct RecordHeader: Hashable, Sendable {
    /// The highest version that this Larder reads.
    package static let version: UInt8 = 2

    package var rule: DeadlineRule
    package var codec: Codec
    package var generation: UInt32
    /// When the value was last written, in milliseconds since 1970.
    package var storedAt: Int64
    /// How long the entry is kept, stale, after its deadline, in milliseconds; nil for the database's grace.
    package var grace: Int64?
    /// The length of the stamp and the tags, in bytes; 0 without tags.
    private(set) var tagsCount: UInt16 = 0
    /// When a purge of the entry's tags ended its freshness, in milliseconds since 1970: `min` if the purge removed the
    /// entry, `max` if no tag was purged. Not stored: calculated from the purges when the header is read.
    private(set) var tagsEnd = Int64.max

    package init(
        storedAt: Int64, rule: DeadlineRule = .governed, codec: Codec = .raw, generation: UInt32 = 0,
        grace: Int64? = nil
    ) {
        (self.storedAt, self.rule, self.codec) = (storedAt, rule, codec)
        (self.generation, self.grace) = (generation, grace)
    }
}

extension RecordHeader {
    /// The header's length in bytes, with the tags.
    package var byteCount: Int { fixedCount + Int(tagsCount) }

    /// The header's length without the tags: 16 to ``fixedCountMax`` bytes.
    var fixedCount: Int {
        let extra = grace == nil ? 0 : 8
        if case .own = rule { return 24 + extra }
        return 16 + extra
    }

    static let fixedCountMax = 32
    /// The maximum length of a header with its tags, in bytes.
    static let byteCountMax = fixedCountMax + Tags.sectionBytesMax
    /// The flags of version 2.
    private static let graceFlag: UInt8 = 4
    private static let tagsFlag: UInt8 = 8

    package var hasTags: Bool { tagsCount > 0 }

    /// Returns the same header for a record with other tags.
    /// - Parameter count: the length of the stamp and the tags, in bytes.
    func tagged(_ count: Int) -> RecordHeader {
        var header = self
        header.tagsCount = UInt16(count)
        header.tagsEnd = .max
        return header
    }

    /// The reason why bytes cannot be read as a record.
    package enum Defect: Error, Equatable {
        case truncated
        case newerVersion(UInt8)
        case unknownFlags(UInt8)
    }

    /// Reads the header at the start of `bytes`. Never traps, whatever the bytes are.
    /// - Parameter purges: the purges of tags, for readers that check freshness; nil if there were none, or freshness
    ///   is not checked.
    @inline(__always)
    package init(parsing bytes: UnsafeRawBufferPointer, _ purges: TagPurges?) throws(Defect) {
        guard bytes.count >= 16 else { throw .truncated }
        let start = UInt64(bigEndian: bytes.loadUnaligned(as: UInt64.self))
        let version = UInt8(truncatingIfNeeded: start >> 56)
        guard version == 1 || version == 2 else { throw .newerVersion(version) }
        let reserved = UInt8(truncatingIfNeeded: start >> 32)
        guard reserved == 0 else { throw .unknownFlags(reserved) }
        codec = Codec(rawValue: UInt8(truncatingIfNeeded: start >> 40))
        generation = UInt32(truncatingIfNeeded: start)
        storedAt = Self.time(UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self)))
        let flags = UInt8(truncatingIfNeeded: start >> 48)
        switch version == 1 ? flags : flags & ~(Self.graceFlag | Self.tagsFlag) {
        case 0: rule = .governed
        case 1:
            guard let deadline = BigEndian.read(bytes, at: 16) else { throw .truncated }
            rule = .own(max(0, Int64(bitPattern: deadline)))
        case 2: rule = .ownNever
        default: throw .unknownFlags(flags)
        }
        if version == 1 { return }
        try readMore(bytes, flags, purges)
    }

    /// Reads the fields that only version 2 has.
    @inline(never)
    private mutating func readMore(
        _ bytes: UnsafeRawBufferPointer, _ flags: UInt8, _ purges: TagPurges?
    ) throws(Defect) {
        // An entry with neither a grace nor tags must be stored as version 1, so that each entry has only one valid
        // form.
        guard flags & (Self.graceFlag | Self.tagsFlag) != 0 else { throw .unknownFlags(flags) }
        if flags & Self.graceFlag != 0 {
            guard let grace = BigEndian.read(bytes, at: fixedCount) else { throw .truncated }
            self.grace = min(max(0, Int64(bitPattern: grace)), UpdatePolicy.longestMilliseconds)
        }
        guard flags & Self.tagsFlag != 0 else { return }
        let start = fixedCount
        guard bytes.count > start + 8 else { throw .truncated }
        let section = UnsafeRawBufferPointer(rebasing: bytes[start...])
        guard let count = Tags.read(UnsafeRawBufferPointer(rebasing: section[8...])), count <= Tags.sectionBytesMax
        else { throw .truncated }
        tagsCount = UInt16(8 + count)
        if let purges { tagsEnd = purges.end(of: UnsafeRawBufferPointer(rebasing: section[..<(8 + count)])) }
    }

    /// Clamps a time from the disk, so that adding an interval cannot overflow. Own deadlines need no clamping, because
    /// sums with them are clamped.
    private static func time(_ raw: UInt64) -> Int64 {
        min(max(Int64(bitPattern: raw), 0), EngineTime.latestMilliseconds + UpdatePolicy.longestMilliseconds)
    }

    /// Appends the header without the tags.
    package func append(to bytes: inout [UInt8]) {
        withUnsafeTemporaryAllocation(byteCount: Self.fixedCountMax, alignment: 8) { space in
            guard let start = space.baseAddress else { return }
            write(to: start)
            bytes.append(contentsOf: UnsafeRawBufferPointer(start: start, count: fixedCount))
        }
    }

    /// Writes ``fixedCount`` bytes to `place`, which must have enough space.
    func write(to place: UnsafeMutableRawPointer) {
        let flags: UInt8 =
            switch rule {
            case .governed: 0
            case .own: 1
            case .ownNever: 2
            }
        var form: UInt32 = 1 << 24
        if grace != nil || tagsCount > 0 {
            form = 2 << 24 | UInt32((grace == nil ? 0 : Self.graceFlag) | (tagsCount == 0 ? 0 : Self.tagsFlag)) << 16
        }
        let first = form | UInt32(flags) << 16 | UInt32(codec.rawValue) << 8
        let start = UInt64(first) << 32 | UInt64(generation)
        place.storeBytes(of: start.bigEndian, as: UInt64.self)
        // Times before 1970 are not valid; reading clamps them too.
        place.storeBytes(of: UInt64(max(0, storedAt)).bigEndian, toByteOffset: 8, as: UInt64.self)
        if case .own(let deadline) = rule {
            place.storeBytes(of: UInt64(max(0, deadline)).bigEndian, toByteOffset: 16, as: UInt64.self)
        }
        if let grace {
            place.storeBytes(of: UInt64(max(0, grace)).bigEndian, toByteOffset: fixedCount - 8, as: UInt64.self)
        }
    }
}

/// A record in memory that belongs to something else.
package struct RecordView {
    package let header: RecordHeader
    /// The bytes after the header's fixed part: the stamp and the tags, if any, and the payload.
    let tail: UnsafeRawBufferPointer

    init(_ header: RecordHeader, tail: UnsafeRawBufferPointer) { (self.header, self.tail) = (header, tail) }

    /// Parses stored bytes.
    /// - Parameter purges: see ``RecordHeader/init(parsing:_:)``.
    init(parsing stored: UnsafeRawBufferPointer, _ purges: TagPurges?) throws(RecordHeader.Defect) {
        header = try RecordHeader(parsing: stored, purges)
        tail = UnsafeRawBufferPointer(rebasing: stored[header.fixedCount...])
    }

    package var payload: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: tail[Int(header.tagsCount)...]) }
    /// The part with the stamp and the tags; empty without tags.
    var tagsSection: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: tail[..<Int(header.tagsCount)]) }
    /// The length of the record as stored, in bytes.
    package var byteCount: Int { header.fixedCount + tail.count }

    /// Writes the record as stored: ``byteCount`` bytes.
    func write(to place: UnsafeMutableRawPointer) {
        header.write(to: place)
        if let start = tail.baseAddress { (place + header.fixedCount).copyMemory(from: start, byteCount: tail.count) }
    }
}

/// An entry without its key: a header and the payload, in the bytes that LevelDB stores.
package struct Record: Hashable, Sendable {
    package let header: RecordHeader
    /// Header and payload, as stored.
    package let stored: [UInt8]

    /// The maximum length of a payload, in bytes: 512 MiB, as in Redis.
    package static let payloadBytesMax = 536_870_912

    /// - Parameter tags: the section with the tags, from ``Tags/section(stamp:)``; empty for a record without tags,
    ///   even if the header was read from a record with tags.
    package init(_ header: RecordHeader, tags: [UInt8] = [], payload: UnsafeRawBufferPointer) {
        let header = header.tagged(tags.count)
        var bytes: [UInt8] = []
        bytes.reserveCapacity(header.byteCount + payload.count)
        header.append(to: &bytes)
        bytes.append(contentsOf: tags)
        bytes.append(contentsOf: payload)
        self.header = header
        stored = bytes
    }

    package init(_ header: RecordHeader, tags: [UInt8] = [], payload: some Collection<UInt8>) {
        let header = header.tagged(tags.count)
        var bytes: [UInt8] = []
        bytes.reserveCapacity(header.byteCount + payload.count)
        header.append(to: &bytes)
        bytes.append(contentsOf: tags)
        bytes.append(contentsOf: payload)
        self.header = header
        stored = bytes
    }

    /// Creates a record without the payload and the tags. Its header keeps the effect of purges of the tags.
    init(headerOnly header: RecordHeader) {
        self.header = header
        var bytes: [UInt8] = []
        header.append(to: &bytes)
        stored = bytes
    }

    /// Creates a record with a payload of `count` bytes: as much of `previous` as fits, and zeros after that. `edit`
    /// then changes the payload in place. For changes of existing values, which may be long: the value is copied only
    /// once.
    package init(
        _ header: RecordHeader, tags: [UInt8] = [], count: Int, previous: UnsafeRawBufferPointer?,
        _ edit: (UnsafeMutableRawBufferPointer) -> Void
    ) {
        let header = header.tagged(tags.count)
        let headerCount = header.byteCount
        self.header = header
        stored = [UInt8](unsafeUninitializedCapacity: headerCount + count) { space, initialized in
            let bytes = UnsafeMutableRawBufferPointer(space)
            guard let start = bytes.baseAddress else { return }
            header.write(to: start)
            // `headerCount` includes the space for the tags after the fixed part.
            (start + header.fixedCount).copyMemory(from: tags, byteCount: tags.count)
            // The space for the payload; `count` is its length.
            let payload = UnsafeMutableRawBufferPointer(start: start + headerCount, count: count)
            let kept = min(count, previous?.count ?? 0)
            if let previous { payload.copyMemory(from: UnsafeRawBufferPointer(rebasing: previous[..<kept])) }
            UnsafeMutableRawBufferPointer(rebasing: payload[kept...]).initializeMemory(as: UInt8.self, repeating: 0)
            edit(payload)
            initialized = headerCount + count
        }
    }

    /// Creates a record from stored bytes, whose header was parsed before.
    init(_ header: RecordHeader, owned stored: [UInt8]) { (self.header, self.stored) = (header, stored) }

    package init(_ record: RecordView) {
        header = record.header
        stored = [UInt8](unsafeUninitializedCapacity: record.byteCount) { space, initialized in
            if let start = space.baseAddress { record.write(to: start) }
            initialized = record.byteCount
        }
    }

    /// Parses stored bytes.
    /// - Parameter purges: see ``RecordHeader/init(parsing:_:)``.
    package init(parsing stored: [UInt8], _ purges: TagPurges?) throws(RecordHeader.Defect) {
        header = try stored.withUnsafeBytes { RecordHeader.read($0, purges) }.get()
        self.stored = stored
    }

    package var payload: ArraySlice<UInt8> { stored.dropFirst(header.byteCount) }
    /// The payload's length in bytes; 0 for a record from ``init(headerOnly:)``.
    package var payloadCount: Int { max(0, stored.count - header.byteCount) }

    /// The part with the stamp and the tags; empty without tags.
    var tagsSection: [UInt8] { header.hasTags ? Array(stored[header.fixedCount..<header.byteCount]) : [] }

    /// The entry's tags; nil if it has none.
    package var tags: Tags? { header.hasTags ? Tags(section: tagsSection) : nil }

    /// Runs `body` on the payload without copying it.
    package func withPayload<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        stored.withUnsafeBytes { body(UnsafeRawBufferPointer(rebasing: $0.dropFirst(header.byteCount))) }
    }

    /// Returns a record with the same payload and another rule; `storedAt` does not change.
    package func with(rule: DeadlineRule) -> Record {
        var header = header
        header.rule = rule
        return Record(header, tags: tagsSection, payload: payload)
    }
}

extension RecordHeader {
    /// Like ``init(parsing:_:)``, for closures that cannot throw a ``Defect``.
    static func read(_ record: UnsafeRawBufferPointer, _ purges: TagPurges?) -> Result<RecordHeader, Defect> {
        Result { () throws(Defect) in try RecordHeader(parsing: record, purges) }
    }
}
