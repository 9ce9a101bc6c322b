import CLarderCRC32C
import LarderLevelDBFormat

/// Finds the data blocks of a table whose footer or index cannot be read.
///
/// LevelDB writes the blocks without gaps from the beginning of the file. A checksum follows each block, so a block
/// ends where the checksum of all bytes since the previous block is right. The search ends at the first damaged block,
/// because nothing tells where the next one begins. Takes time in proportion to the file's length.
struct BlockSearch {
    private let blocks: BlockReader
    /// The blocks found so far, in the form of an index block without restart points. An entry's key is the last key of
    /// its block.
    private let index: Memory
    private(set) var last: [UInt8]?

    private static let pieceBytes = 65_536
    /// The largest sequence number. LevelDB uses it for keys in its index, and for no entry.
    private static let sequenceMax: UInt64 = (1 << 56) - 1

    /// - Parameter blocks: reads the whole file.
    init(_ blocks: BlockReader) throws(SalvageError) {
        self.blocks = blocks
        index = try Memory(count: 0, path: blocks.files.path)
    }

    /// Returns an index of the blocks; nil if none was found.
    mutating func run() throws(SalvageError) -> Memory? {
        var start = 0
        while let handle = try next(from: start) { start = handle.offset + handle.byteCount + BlockHandle.trailerBytes }
        guard last != nil else { return nil }
        try index.append([0, 0, 0, 0], path: blocks.files.path)
        return index
    }

    /// Finds the data block that begins at `start`, and adds it to the index.
    private mutating func next(from start: Int) throws(SalvageError) -> BlockHandle? {
        let piece = try Memory(count: Self.pieceBytes, path: blocks.files.path)
        var (position, checksum) = (start, UInt32(0))
        while blocks.byteCount - position >= BlockHandle.trailerBytes, position - start <= blocks.blockBytesMax {
            let count = min(Self.pieceBytes, blocks.byteCount - position)
            let target = UnsafeMutableRawBufferPointer(start: piece.start, count: count)
            if try blocks.files.read(blocks.name, at: position, into: target) != nil { return nil }
            // Each byte could be the kind of compression, which is behind the block and included in its checksum.
            for place in 0...(count - BlockHandle.trailerBytes) {
                checksum = larder_crc32c_extend(checksum, piece.start + place, 1)
                var trailer = Scanner(UnsafeRawBufferPointer(target), from: place + 1)
                guard trailer.fixed32().map(MaskedChecksum.unmask) == checksum else { continue }
                let handle = BlockHandle(offset: start, byteCount: position + place - start)
                if try add(handle) { return handle }
            }
            position += count - BlockHandle.trailerBytes + 1
        }
        return nil
    }

    /// Adds a block to the index.
    /// - Returns: false if it is not a block of entries that follow the previous ones. The table's filter and its index
    ///   have checksums, too.
    private mutating func add(_ handle: BlockHandle) throws(SalvageError) -> Bool {
        guard case .block(let block) = try blocks.read(handle),
            var cursor = try BlockCursor(block, path: blocks.files.path)
        else { return false }
        var last = last
        while case .entry = try cursor.next(path: blocks.files.path) {
            guard let key = InternalKey(cursor.key.bytes), key.kind <= InternalKey.value,
                key.sequence < Self.sequenceMax, key.isBehind(last)
            else { return false }
            last = Array(cursor.key.bytes)
        }
        guard let last, last != self.last else { return false }
        self.last = last
        let value = Self.varint(handle.offset) + Self.varint(handle.byteCount)
        let entry = [0] + Self.varint(last.count) + Self.varint(value.count) + last + value
        try index.append(entry, path: blocks.files.path)
        return true
    }

    private static func varint(_ number: Int) -> [UInt8] {
        var (bytes, rest) = ([UInt8](), number)
        while rest >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        return bytes + [UInt8(rest)]
    }
}

extension InternalKey {
    /// Whether a table may have this key directly or later behind the key `last`; nil for the table's first key.
    func isBehind(_ last: [UInt8]?) -> Bool {
        last?.withUnsafeBytes { bytes in InternalKey(bytes).map { InternalKey.isLess($0, self) } ?? false } ?? true
    }
}
