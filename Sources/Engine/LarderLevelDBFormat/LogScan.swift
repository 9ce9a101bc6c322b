import CLarderCRC32C
import LarderPlatform

/// The kinds of fragments of a log: a record, or a part of one. On disk: do not change.
package enum LogFragmentKind: UInt8 {
    case full = 1
    case first = 2
    case middle = 3
    case last = 4
}

/// The header of a fragment in a block of a log.
///
/// The format according to LevelDB's documentation: the file consists of blocks of 32 KiB, which contain fragments.
/// Each fragment has a header of seven bytes (masked CRC-32C of kind and data, length, kind) and the data. A rest of a
/// block that is shorter than a header is not used. A record that does not fit into a block is split into fragments:
/// *first*, any number of *middle*, *last*.
package struct LogFragment {
    package let checksum: UInt32
    /// The length of the data in bytes.
    package let length: Int
    /// The raw value of a ``LogFragmentKind``, unless the header is damaged.
    package let kind: UInt8

    package static let blockBytes = 32 << 10
    package static let headerBytes = 7

    /// Reads a header; nil if the block ends within it.
    package init?(_ block: UnsafeRawBufferPointer, at position: Int) {
        var scanner = Scanner(block, from: position)
        guard let checksum = scanner.fixed32(), let low = scanner.byte(), let high = scanner.byte(),
            let kind = scanner.byte()
        else { return nil }
        (self.checksum, length, self.kind) = (checksum, Int(low) | Int(high) << 8, kind)
    }

    package init(checksum: UInt32, length: Int, kind: UInt8) {
        (self.checksum, self.length, self.kind) = (checksum, length, kind)
    }

    /// Whether the checksum of the fragment at this position is correct. The data must not go beyond the block.
    package func isValid(in block: UnsafeRawBufferPointer, at position: Int) -> Bool {
        let start = position + Self.headerBytes
        // The checksum covers the kind, which is the last byte of the header, and the data.
        return MaskedChecksum.matches(
            checksum, UnsafeRawBufferPointer(rebasing: block[(start - 1)..<(start + length)]))
    }
}

/// The length of the valid part of a LevelDB log file (`NNNNNN.log`, or `MANIFEST-NNNNNN`, which has the same format).
package struct LogScan: Hashable, Sendable {
    /// The length in bytes up to which all records are complete and valid.
    package var goodBytes = 0
    package var fileBytes = 0
    /// The problem with the record at ``goodBytes``; nil if all records up to the end of the file are valid.
    package var problem: String?
    /// Whether the only problem is that the file ends within a record.
    package var isCutShort: Bool { problem == Self.endsWithin }

    private static let endsWithin = "the file ends within a record"

    /// Reads a log up to its first invalid record, without changing it.
    /// - Parameters:
    ///   - start: the offset at which to begin. It must be the offset of a record, or the end of the file. The default
    ///     is 0.
    ///   - body: receives each complete record, and returns its problem; nil if there is none.
    /// - Throws: an error with the number `ENOENT` if there is no such file.
    package static func scan(
        _ path: String, from start: Int = 0, _ body: ([UInt8]) -> String? = { _ in nil }
    ) throws(FileError) -> LogScan {
        let file = FileSystem.openFile(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { throw FileError(operation: "open", path: path, number: errno) }
        defer { close(file) }
        var scan = LogScan()
        scan.goodBytes = start
        scan.fileBytes = start - start % LogFragment.blockBytes
        guard lseek(file, off_t(scan.fileBytes), SEEK_SET) >= 0 else {
            throw FileError(operation: "lseek", path: path, number: errno)
        }
        var record: [UInt8] = []
        var isWithin = false
        var block = [UInt8](repeating: 0, count: LogFragment.blockBytes)
        while true {
            let count = try fill(&block, file, path)
            block.withUnsafeBytes { block in
                scan.take(UnsafeRawBufferPointer(rebasing: block[..<count]), from: start, &record, &isWithin, body)
            }
            guard count == block.count else { break }
        }
        if isWithin, scan.problem == nil { scan.problem = endsWithin }
        return scan
    }

    /// Reads the records of a block up to the first invalid one.
    /// - Parameters:
    ///   - record: the current record so far.
    ///   - isWithin: whether the current record is incomplete.
    private mutating func take(
        _ block: UnsafeRawBufferPointer, from start: Int, _ record: inout [UInt8], _ isWithin: inout Bool,
        _ body: ([UInt8]) -> String?
    ) {
        let isLast = block.count < LogFragment.blockBytes
        var offset = max(0, start - fileBytes)
        while problem == nil, offset < block.count, isLast || block.count - offset >= LogFragment.headerBytes {
            guard let fragment = LogFragment(block, at: offset) else {
                problem = Self.endsWithin
                break
            }
            let data = (offset + LogFragment.headerBytes)..<(offset + LogFragment.headerBytes + fragment.length)
            problem = Self.problem(of: fragment, block, at: offset, end: data.upperBound, isWithin: isWithin)
            guard problem == nil, let kind = LogFragmentKind(rawValue: fragment.kind) else { break }
            if !isWithin { record.removeAll(keepingCapacity: true) }
            record.append(contentsOf: block[data])
            offset = data.upperBound
            isWithin = kind == .first || kind == .middle
            guard !isWithin else { continue }
            problem = body(record)
            if problem == nil { goodBytes = fileBytes + offset }
        }
        fileBytes += block.count
    }

    private static func problem(
        of fragment: LogFragment, _ block: UnsafeRawBufferPointer, at offset: Int, end: Int, isWithin: Bool
    ) -> String? {
        guard end <= block.count else {
            return block.count < LogFragment.blockBytes ? endsWithin : "a record with a wrong length"
        }
        guard fragment.isValid(in: block, at: offset) else { return "a record with a wrong checksum" }
        guard let kind = LogFragmentKind(rawValue: fragment.kind) else { return "a record of an unknown kind" }
        return isWithin == (kind == .middle || kind == .last) ? nil : "an incomplete record"
    }

    /// Reads a block, and returns its length, which is less than that of a whole block at the end of the file.
    private static func fill(_ block: inout [UInt8], _ file: Int32, _ path: String) throws(FileError) -> Int {
        var count = 0
        while count < block.count {
            let got = block.withUnsafeMutableBytes { read(file, $0.baseAddress.map { $0 + count }, $0.count - count) }
            if got == 0 { break }
            if got < 0 {
                if errno == EINTR { continue }
                throw FileError(operation: "read", path: path, number: errno)
            }
            count += got
        }
        return count
    }

    /// Checks the records and batches of a log. Each record is a batch. A batch begins with two little-endian numbers:
    /// the sequence number of its first change (8 bytes), and the number of its changes (4 bytes). The sequence numbers
    /// must increase: LevelDB terminates the process if a number is repeated.
    package static func scanBatches(_ path: String) throws(FileError) -> LogScan {
        var next: UInt64 = 0
        return try scan(path) { batch in
            batch.withUnsafeBytes { batch in
                var scanner = Scanner(batch)
                guard let number = scanner.fixed64(), let count = scanner.fixed32() else {
                    return "a batch without a header"
                }
                guard number >= next, number < 1 << 56 else { return "a repeated batch" }
                next = number + UInt64(count)
                return nil
            }
        }
    }

    /// Encodes a record to be appended to a log with `offset` valid bytes.
    package static func encode(_ record: [UInt8], at offset: Int) -> [UInt8] {
        var bytes: [UInt8] = []
        var rest = record[...]
        repeat {
            var room = LogFragment.blockBytes - (offset + bytes.count) % LogFragment.blockBytes
            if room < LogFragment.headerBytes {
                bytes.append(contentsOf: [UInt8](repeating: 0, count: room))
                room = LogFragment.blockBytes
            }
            let data = rest.prefix(room - LogFragment.headerBytes)
            let (isFirst, isLast) = (rest.startIndex == record.startIndex, data.endIndex == record.endIndex)
            let kind: LogFragmentKind = isFirst ? (isLast ? .full : .first) : (isLast ? .last : .middle)
            let checked = [kind.rawValue] + data
            let masked = MaskedChecksum.mask(
                checked.withUnsafeBytes { larder_crc32c_extend(0, $0.baseAddress, $0.count) })
            for shift in stride(from: UInt32(0), to: 32, by: 8) {
                bytes.append(UInt8(truncatingIfNeeded: masked >> shift))
            }
            bytes.append(UInt8(truncatingIfNeeded: data.count))
            bytes.append(UInt8(truncatingIfNeeded: data.count >> 8))
            bytes.append(contentsOf: checked)
            rest = rest.dropFirst(data.count)
        } while !rest.isEmpty
        return bytes
    }
}
