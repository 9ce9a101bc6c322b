/// The format of the journal's files. **These bytes are on users' disks: do not change them.** See
/// docs/StorageFormat.md.
enum JournalFormat {
    static let directoryName = "JOURNAL"
    /// The version of the layout of segments and frames.
    static let version: UInt32 = 1
    /// "LARDERJL", the first bytes of every segment.
    static let segmentMagic: UInt64 = 0x4C41_5244_4552_4A4C
    /// F7 "LJF", the first bytes of every frame.
    static let frameMagic: UInt32 = 0xF74C_4A46

    static let segmentHeaderBytes = 52
    static let frameHeaderBytes = 40

    /// The longest payload of a frame, in bytes. Far more than the engine ever writes; limits the memory that a reader
    /// allocates.
    static let payloadBytesMax = 1 << 32
    static let keyBytesMax = Key.bytesMax
    /// The longest record: the longest header, and the longest payload of an entry.
    static let recordBytesMax = Record.payloadBytesMax + RecordHeader.byteCountMax
    static let databaseNameBytesMax = 255
    /// The largest segment number; the first one is 1. Far below the maximum of `UInt64`, so counting up cannot
    /// overflow.
    static let numberMax: UInt64 = 1 << 62

    /// The first byte of an operation.
    enum Kind {
        /// The database of the following operations: name length (1 byte), epoch (8), name.
        static let database: UInt8 = 1
        /// Key length (4), record length (4), key, record.
        static let put: UInt8 = 2
        /// Key length (4), key.
        static let remove: UInt8 = 3
    }

    /// Returns the file name of a segment, such as `0000000000000001.log`.
    static func fileName(_ number: UInt64) -> String { number.hexadecimal() + ".log" }

    /// Returns the number of the segment with this file name; nil for every other name.
    static func number(ofFile name: String) -> UInt64? {
        guard name.hasSuffix(".log"), let number = UInt64(name.dropLast(4), radix: 16),
            (1...numberMax).contains(number),
            fileName(number) == name
        else { return nil }
        return number
    }

    /// Returns the checksum of a frame. It covers the segment's number, the frame's offset in the segment, and the
    /// bytes after the checksum. So a frame is valid only where it was written: a reader never mistakes a value for a
    /// frame, even if the value contains the bytes of a frame.
    static func frameChecksum(segment: UInt64, offset: Int, _ checked: UnsafeRawBufferPointer) -> UInt32 {
        let place = withUnsafeBytes(of: (segment.bigEndian, UInt64(offset).bigEndian)) { CRC32C.checksum($0) }
        return CRC32C.extend(place, checked)
    }
}

/// The header of every segment.
///
/// ```
/// offset  bytes  field (integers big-endian)
///      0      8  "LARDERJL"
///      8      4  version of the layout: 1
///     12      4  CRC-32C of the bytes 0 to 11; every version begins with these 16 bytes
///     16      8  number of this segment
///     24      8  number of the previous segment; 0: there was none
///     32      8  valid bytes of the previous segment, including its header
///     40      8  last sequence before this segment
///     48      4  CRC-32C of the bytes 0 to 47
/// ```
struct JournalSegmentHeader: Equatable {
    var number: UInt64
    var previousNumber: UInt64
    var previousBytes: UInt64
    var previousSequence: UInt64

    enum Defect: Error, Equatable {
        case newerVersion(UInt32)
        case malformed(String)
    }

    var bytes: [UInt8] {
        SealedBlock.bytes(
            JournalFormat.segmentMagic, version: JournalFormat.version,
            [number, previousNumber, previousBytes, previousSequence])
    }
}

extension JournalSegmentHeader {
    /// Reads a segment's header from the first bytes of its file. The file may be shorter than a header.
    init(parsing bytes: UnsafeRawBufferPointer, number expected: UInt64) throws(Defect) {
        guard let magic = BigEndian.read(bytes, at: 0), let version = BigEndian.read(bytes, at: 8, count: 4),
            let preambleSum = BigEndian.read(bytes, at: 12, count: 4)
        else { throw .malformed("the file ends within its header") }
        guard magic == JournalFormat.segmentMagic else { throw .malformed("it does not begin like a segment") }
        guard preambleSum == UInt64(CRC32C.checksum(UnsafeRawBufferPointer(rebasing: bytes[0..<12]))) else {
            throw .malformed("the checksum of the header's beginning does not match")
        }
        // A newer layout may differ after this point, so read nothing else of it.
        guard version <= UInt64(JournalFormat.version) else { throw .newerVersion(UInt32(version)) }
        guard version >= 1 else { throw .malformed("invalid version \(version)") }
        guard let number = BigEndian.read(bytes, at: 16), let previousNumber = BigEndian.read(bytes, at: 24),
            let previousBytes = BigEndian.read(bytes, at: 32), let previousSequence = BigEndian.read(bytes, at: 40),
            let sum = BigEndian.read(bytes, at: 48, count: 4)
        else { throw .malformed("the file ends within its header") }
        guard sum == UInt64(CRC32C.checksum(UnsafeRawBufferPointer(rebasing: bytes[0..<48]))) else {
            throw .malformed("the checksum of the header does not match")
        }
        guard number == expected else { throw .malformed("its header has the number \(number) instead of \(expected)") }
        guard previousNumber < number else {
            throw .malformed("its header names \(previousNumber) as the previous segment, whose number must be lower")
        }
        self.init(
            number: number, previousNumber: previousNumber, previousBytes: previousBytes,
            previousSequence: previousSequence)
    }
}

/// The header of a commit group, before its operations.
///
/// ```
/// offset  bytes  field (integers big-endian)
///      0      4  F7 "LJF"
///      4      4  CRC-32C, see JournalFormat.frameChecksum, of the bytes from 8 on
///      8      8  length of the payload
///     16      8  first sequence
///     24      8  last sequence
///     32      8  the last sequence known to be on the disk when the frame was written
///     40         payload: operations
/// ```
struct JournalFrameHeader: Equatable {
    var payloadBytes: Int
    var firstSequence: UInt64
    var lastSequence: UInt64
    var syncedSequence: UInt64

    var frameBytes: Int { JournalFormat.frameHeaderBytes + payloadBytes }

    init(payloadBytes: Int, firstSequence: UInt64, lastSequence: UInt64, syncedSequence: UInt64) {
        (self.payloadBytes, self.firstSequence) = (payloadBytes, firstSequence)
        (self.lastSequence, self.syncedSequence) = (lastSequence, syncedSequence)
    }

    /// Reads the header of a frame whose payload has at most `room` bytes.
    /// - Returns: nil if the bytes are not a frame's header, or if the payload is longer.
    init?(parsing bytes: UnsafeRawBufferPointer, room: Int) {
        guard BigEndian.read(bytes, at: 0, count: 4) == UInt64(JournalFormat.frameMagic),
            let length = BigEndian.read(bytes, at: 8), let first = BigEndian.read(bytes, at: 16),
            let last = BigEndian.read(bytes, at: 24), let synced = BigEndian.read(bytes, at: 32),
            // Check the length before it is used in arithmetic or an allocation.
            length <= UInt64(max(0, min(room, JournalFormat.payloadBytesMax)))
        else { return nil }
        self.init(payloadBytes: Int(length), firstSequence: first, lastSequence: last, syncedSequence: synced)
    }

    /// Completes the frame in `frame`, whose payload follows the space for the header.
    /// - Parameter staged: the last part of the payload, if that part is already in a file. Then `frame` contains only
    ///   the bytes before that part.
    func seal(_ frame: UnsafeMutableRawBufferPointer, segment: UInt64, offset: Int, staged: StagedFrame? = nil) {
        frame.storeBytes(of: JournalFormat.frameMagic.bigEndian, as: UInt32.self)
        frame.storeBytes(of: UInt64(payloadBytes).bigEndian, toByteOffset: 8, as: UInt64.self)
        frame.storeBytes(of: firstSequence.bigEndian, toByteOffset: 16, as: UInt64.self)
        frame.storeBytes(of: lastSequence.bigEndian, toByteOffset: 24, as: UInt64.self)
        frame.storeBytes(of: syncedSequence.bigEndian, toByteOffset: 32, as: UInt64.self)
        let here = frameBytes - (staged?.byteCount ?? 0)
        var sum = JournalFormat.frameChecksum(
            segment: segment, offset: offset, UnsafeRawBufferPointer(rebasing: frame[8..<here]))
        if let staged { sum = CRC32C.combine(sum, staged.checksum, count: staged.byteCount) }
        frame.storeBytes(of: sum.bigEndian, toByteOffset: 4, as: UInt32.self)
    }
}

/// Iterates over the operations in a frame's payload. Never reads beyond its end, even if the bytes are damaged.
struct JournalPayload {
    enum Step {
        case database(name: UnsafeRawBufferPointer, epoch: UInt64)
        case put(key: UnsafeRawBufferPointer, record: UnsafeRawBufferPointer)
        case remove(key: UnsafeRawBufferPointer)
        case end
        case malformed
    }

    private let bytes: UnsafeRawBufferPointer
    private var offset = 0

    init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

    mutating func next() -> Step {
        guard offset < bytes.count else { return .end }
        let kind = bytes[offset]
        offset += 1
        switch kind {
        case JournalFormat.Kind.database:
            guard let length = integer(1), length > 0, let epoch = integer(8), let name = take(length) else {
                return .malformed
            }
            return .database(name: name, epoch: epoch)
        case JournalFormat.Kind.put:
            guard let keyLength = integer(4), let recordLength = integer(4),
                keyLength <= UInt64(JournalFormat.keyBytesMax), recordLength <= UInt64(JournalFormat.recordBytesMax),
                let key = take(keyLength), let record = take(recordLength)
            else { return .malformed }
            return .put(key: key, record: record)
        case JournalFormat.Kind.remove:
            guard let length = integer(4), length <= UInt64(JournalFormat.keyBytesMax), let key = take(length) else {
                return .malformed
            }
            return .remove(key: key)
        default: return .malformed
        }
    }

    private mutating func integer(_ count: Int) -> UInt64? {
        guard let value = BigEndian.read(bytes, at: offset, count: count) else { return nil }
        offset += count
        return value
    }

    private mutating func take(_ count: UInt64) -> UnsafeRawBufferPointer? {
        guard count <= UInt64(bytes.count - offset) else { return nil }
        defer { offset += Int(count) }
        return UnsafeRawBufferPointer(rebasing: bytes[offset..<(offset + Int(count))])
    }

    /// Returns whether a payload has operations of a database.
    static func concerns(_ name: String, _ bytes: UnsafeRawBufferPointer) -> Bool {
        var payload = JournalPayload(bytes)
        while true {
            switch payload.next() {
            case .database(let found, _): if String(decoding: found, as: UTF8.self) == name { return true }
            case .put, .remove: break
            case .end, .malformed: return false
            }
        }
    }

    /// Counts the puts and removals in a payload.
    /// - Returns: nil if the payload is malformed. Then none of its operations is valid.
    static func operationCount(_ bytes: UnsafeRawBufferPointer) -> Int? {
        var payload = JournalPayload(bytes)
        var count = 0
        var hasDatabase = false
        while true {
            switch payload.next() {
            case .database(let name, _):
                guard String(validating: name, as: UTF8.self) != nil else { return nil }
                hasDatabase = true
            case .put, .remove:
                guard hasDatabase else { return nil }
                count += 1
            case .end: return count
            case .malformed: return nil
            }
        }
    }
}
