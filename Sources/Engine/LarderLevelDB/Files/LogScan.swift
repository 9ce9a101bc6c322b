import CLarderCRC32C
import LarderPlatform

/// The length of the valid part of a LevelDB log file (`NNNNNN.log`, or `MANIFEST-NNNNNN`, which has the same format).
///
/// The format according to LevelDB's documentation: the file consists of blocks of 32 KiB, which contain records. Each
/// record has a header of seven bytes (masked CRC-32C of kind and data, length, kind) and the data. A rest of a block
/// that is shorter than a header is not used. A record that does not fit into a block is split into parts: *first*, any
/// number of *middle*, *last*.
package struct LogScan: Hashable, Sendable {
    /// The length in bytes up to which all records are complete and valid.
    package var goodBytes = 0
    package var fileBytes = 0
    /// The problem with the record at ``goodBytes``; nil if all records up to the end of the file are valid.
    package var problem: String?
    /// Whether the only problem is that the file ends within a record.
    package var isCutShort: Bool { problem == Self.endsWithin }

    private static let endsWithin = "the file ends within a record"

    private static let blockBytes = 32 << 10
    private static let headerBytes = 7

    /// Reads a log up to its first invalid record, without changing it.
    /// - Parameters:
    ///   - start: the offset at which to begin. It must be the offset of a record, or the end of the file. The default
    ///     is 0.
    ///   - body: receives each complete record, and returns its problem; nil if there is none.
    /// - Throws: `.notFound` if there is no such file, `.ioError` if the system reports an error.
    package static func scan(
        _ path: String, from start: Int = 0, _ body: (ArraySlice<UInt8>) -> String? = { _ in nil }
    ) throws(LevelDBError) -> LogScan {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { throw LevelDBError(systemCall: "open", operation: "scan log", path: path) }
        defer { close(file) }
        var scan = LogScan()
        scan.goodBytes = start
        scan.fileBytes = start - start % blockBytes
        guard lseek(file, off_t(scan.fileBytes), SEEK_SET) >= 0 else {
            throw LevelDBError(systemCall: "lseek", operation: "scan log", path: path)
        }
        var record: [UInt8] = []
        var isWithin = false
        var block = [UInt8](repeating: 0, count: blockBytes)
        while true {
            let count = try fill(&block, file, path)
            var offset = max(0, start - scan.fileBytes)
            while scan.problem == nil, offset < count, count - offset >= headerBytes || count < blockBytes {
                let part = part(block[offset..<count], isLastBlock: count < blockBytes)
                guard case .good(let kind, let data) = part, isWithin == (kind == .middle || kind == .last) else {
                    scan.problem = part.problem ?? "an incomplete record"
                    break
                }
                if !isWithin { record.removeAll(keepingCapacity: true) }
                record.append(contentsOf: data)
                offset = data.endIndex
                isWithin = kind == .first || kind == .middle
                guard !isWithin else { continue }
                scan.problem = body(record[...])
                if scan.problem == nil { scan.goodBytes = scan.fileBytes + offset }
            }
            scan.fileBytes += count
            guard count == blockBytes else { break }
        }
        if isWithin, scan.problem == nil { scan.problem = endsWithin }
        return scan
    }

    /// Reads a block, and returns its length, which is less than ``blockBytes`` at the end of the file.
    private static func fill(_ block: inout [UInt8], _ file: Int32, _ path: String) throws(LevelDBError) -> Int {
        var count = 0
        while count < blockBytes {
            let got = block.withUnsafeMutableBytes { read(file, $0.baseAddress.map { $0 + count }, blockBytes - count) }
            if got == 0 { break }
            if got < 0 {
                if errno == EINTR { continue }
                throw LevelDBError(systemCall: "read", operation: "scan log", path: path)
            }
            count += got
        }
        return count
    }

    /// Checks the records and batches of a log. Each record is a batch. A batch begins with two little-endian numbers:
    /// the sequence number of its first change (8 bytes), and the number of its changes (4 bytes). The sequence numbers
    /// must increase: LevelDB terminates the process if a number is repeated.
    package static func scanBatches(_ path: String) throws(LevelDBError) -> LogScan {
        var next: UInt64 = 0
        return try scan(path) { batch in
            guard batch.count >= 12 else { return "a batch without a header" }
            let number = integer(batch.prefix(8))
            guard number >= next, number < 1 << 56 else { return "a repeated batch" }
            next = number + integer(batch.dropFirst(8).prefix(4))
            return nil
        }
    }

    private static func integer(_ bytes: ArraySlice<UInt8>) -> UInt64 {
        bytes.reversed().reduce(0) { $0 << 8 | UInt64($1) }
    }

    private enum Kind: UInt8 {
        case full = 1
        case first, middle, last
    }

    private enum Part {
        case good(Kind, ArraySlice<UInt8>)
        case bad(String)

        var problem: String? { if case .bad(let problem) = self { problem } else { nil } }
    }

    /// Encodes a record to be appended to a log with `offset` valid bytes.
    package static func encode(_ record: [UInt8], at offset: Int) -> [UInt8] {
        var bytes: [UInt8] = []
        var rest = record[...]
        repeat {
            var room = blockBytes - (offset + bytes.count) % blockBytes
            if room < headerBytes {
                bytes.append(contentsOf: [UInt8](repeating: 0, count: room))
                room = blockBytes
            }
            let data = rest.prefix(room - headerBytes)
            let (isFirst, isLast) = (rest.startIndex == record.startIndex, data.endIndex == record.endIndex)
            let kind: Kind = isFirst ? (isLast ? .full : .first) : (isLast ? .last : .middle)
            let checked = [kind.rawValue] + data
            let masked = mask(checked.withUnsafeBytes { larder_crc32c_extend(0, $0.baseAddress, $0.count) })
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

    private static func mask(_ checksum: UInt32) -> UInt32 { (checksum >> 15 | checksum << 17) &+ 0xa282_ead8 }

    private static func part(_ bytes: ArraySlice<UInt8>, isLastBlock: Bool) -> Part {
        guard bytes.count >= headerBytes else { return .bad(endsWithin) }
        let start = bytes.startIndex
        let masked = UInt32(truncatingIfNeeded: integer(bytes[start..<(start + 4)]))
        let length = Int(bytes[start + 4]) | Int(bytes[start + 5]) << 8
        let end = start + headerBytes + length
        guard end <= bytes.endIndex else {
            return .bad(isLastBlock ? endsWithin : "a record with a wrong length")
        }
        let checksum = bytes[(start + 6)..<end].withUnsafeBytes { larder_crc32c_extend(0, $0.baseAddress, $0.count) }
        guard masked == mask(checksum) else {
            return .bad("a record with a wrong checksum")
        }
        guard let kind = Kind(rawValue: bytes[start + 6]) else { return .bad("a record of an unknown kind") }
        return .good(kind, bytes[(start + headerBytes)..<end])
    }
}
