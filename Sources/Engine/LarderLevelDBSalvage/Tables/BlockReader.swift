import CLarderSnappy
import LarderLevelDBFormat

/// The position and length of a block in a table.
struct BlockHandle {
    let offset: Int
    let byteCount: Int

    /// The size of the trailer after each block: one byte for the kind of compression, and a checksum of four bytes.
    static let trailerBytes = 5

    init(offset: Int, byteCount: Int) { (self.offset, self.byteCount) = (offset, byteCount) }

    init?(_ scanner: inout Scanner) {
        guard let offset = scanner.length(), let byteCount = scanner.length() else { return nil }
        self.init(offset: offset, byteCount: byteCount)
    }

    func ends(at limit: Int) -> Bool { fits(before: limit) && offset + byteCount + Self.trailerBytes == limit }

    /// Whether the block and its trailer end before `limit`.
    func fits(before limit: Int) -> Bool {
        offset <= limit && byteCount <= limit - offset && Self.trailerBytes <= limit - offset - byteCount
    }
}

/// Reads, verifies and decompresses blocks of a table.
struct BlockReader {
    let files: SalvageFiles
    let name: String
    /// The length in bytes of the part of the file that may contain blocks: all except the footer, if there is one.
    let byteCount: Int
    let blockBytesMax: Int

    enum Outcome {
        case block(Memory)
        /// The block after one wrong bit was corrected. Only use it if its content can be verified in another way.
        case repaired(Memory)
        case bad(String)
    }

    /// The kinds of compression. On disk: do not change.
    private static let plain: UInt8 = 0
    private static let snappy: UInt8 = 1

    /// Reads a block, verifies its checksum, and decompresses it.
    /// - Parameter repairs: whether to correct the block if one bit was flipped.
    func read(_ handle: BlockHandle, repairs: Bool = false) throws(SalvageError) -> Outcome {
        guard handle.fits(before: byteCount) else { return .bad("it is beyond the file's end") }
        guard handle.byteCount <= blockBytesMax else { return .bad("it is longer than any block") }
        let stored = try Memory(count: handle.byteCount + BlockHandle.trailerBytes, path: files.path)
        let target = UnsafeMutableRawBufferPointer(start: stored.start, count: stored.count)
        if let reason = try files.read(name, at: handle.offset, into: target) { return .bad(reason) }
        var trailer = Scanner(stored.bytes, from: handle.byteCount)
        guard trailer.byte() != nil, let checksum = trailer.fixed32() else { return .bad("it has no trailer") }
        let checked = UnsafeRawBufferPointer(rebasing: stored.bytes[..<(handle.byteCount + 1)])
        let isValid = MaskedChecksum.matches(checksum, checked)
        if !isValid {
            guard repairs, let place = BitFlip.place(stored: checksum, checked) else {
                return .bad("checksum mismatch")
            }
            if case .bytes(let offset, let mask) = place { stored.flip(mask, at: offset) }
        }
        let kind = stored.bytes[handle.byteCount]
        stored.truncate(to: handle.byteCount)
        let outcome = try uncompress(stored, kind)
        if !isValid, case .block(let memory) = outcome { return .repaired(memory) }
        return outcome
    }

    private func uncompress(_ stored: Memory, _ kind: UInt8) throws(SalvageError) -> Outcome {
        switch kind {
        case Self.plain: return .block(stored)
        case Self.snappy: return try uncompress(stored)
        default: return .bad("compressed in an unknown way")
        }
    }

    private func uncompress(_ stored: Memory) throws(SalvageError) -> Outcome {
        let source = stored.start.assumingMemoryBound(to: CChar.self)
        var count = 0
        guard snappy_uncompressed_length(source, stored.count, &count) == SNAPPY_OK else {
            return .bad("malformed compressed data")
        }
        // Snappy encodes at most 64 bytes in 3 bytes, so data cannot expand by more than a factor of 22.
        guard count >= 0, count <= blockBytesMax, count / 22 <= stored.count else {
            return .bad("its stated length is impossible")
        }
        let memory = try Memory(count: count, path: files.path)
        let target = memory.start.assumingMemoryBound(to: CChar.self)
        guard snappy_uncompress(source, stored.count, target, &count) == SNAPPY_OK, count == memory.count else {
            return .bad("malformed compressed data")
        }
        return .block(memory)
    }
}

/// Reads the entries of a block in order. Never reads beyond the block, even if its bytes are invalid.
struct BlockCursor {
    private let block: Memory
    private var scanner: Scanner
    /// The current entry's key.
    let key: Memory
    private(set) var value: UnsafeRawBufferPointer

    enum Step {
        case entry
        case end
        case malformed
    }

    /// Creates a cursor before the first entry; returns nil if the bytes are not a block.
    init?(_ block: Memory, path: String) throws(SalvageError) {
        var end = Scanner(block.bytes, from: block.count - 4)
        guard block.count >= 4, let restarts = end.fixed32() else { return nil }
        guard Int(restarts) <= (block.count - 4) / 4 else { return nil }
        let limit = block.count - 4 - 4 * Int(restarts)
        self.block = block
        scanner = Scanner(UnsafeRawBufferPointer(rebasing: block.bytes[..<limit]))
        value = UnsafeRawBufferPointer(rebasing: block.bytes[..<0])
        key = try Memory(count: 0, path: path)
    }

    /// Moves to the next entry. The bytes of ``key`` and ``value`` are valid until the next call.
    mutating func next(path: String) throws(SalvageError) -> Step {
        if scanner.isAtEnd { return .end }
        guard let shared = scanner.length(), let own = scanner.length(), let valueCount = scanner.length(),
            shared <= key.count, let rest = scanner.piece(own), let value = scanner.piece(valueCount)
        else { return .malformed }
        key.truncate(to: shared)
        try key.append(rest, path: path)
        self.value = value
        return .entry
    }
}
