/// A table that is to be read.
struct TableReference {
    let number: UInt64
    let name: String
    /// nil where no manifest tells; then the range below may be unknown too.
    let level: Int?
    /// As the manifest says, otherwise as the file is.
    let byteCount: Int
    /// Internal keys; nil: not known.
    var smallest: [UInt8]?
    var largest: [UInt8]?

    var origin: Origin { .table(number: number, level: level) }

    /// All keys that it may have.
    var range: KeyRange {
        KeyRange(
            lower: smallest.map { Array($0.dropLast(8)) } ?? [],
            upper: largest.map { KeyRange.successor(Array($0.dropLast(8))) })
    }
}

/// A table whose index is readable.
struct TableFile {
    /// How a table ends. On disk: do not change.
    private static let footerBytes = 48
    private static let magic: UInt64 = 0xDB47_7524_8B80_FB57

    let blocks: BlockReader
    let index: Memory
    /// The last key of the index; nil where it has no blocks.
    let last: [UInt8]?
    /// What is wrong with its filter; nothing is lost by that.
    let filterDamage: SalvageDamage?

    enum Outcome {
        case table(TableFile)
        case bad(SalvageDamage.Part, offset: Int, byteCount: Int, reason: String)
    }

    static func open(
        _ reference: TableReference, files: SalvageFiles, options: SalvageOptions
    ) throws(SalvageError) -> Outcome {
        let byteCount = reference.byteCount
        switch try files.look(at: reference.name) {
        case .missing: return .bad(.table, offset: 0, byteCount: byteCount, reason: "the file is missing")
        case .noFile: return .bad(.table, offset: 0, byteCount: byteCount, reason: "it is no file")
        case .file(let found) where found < byteCount || byteCount < footerBytes:
            return .bad(.table, offset: found, byteCount: byteCount - found, reason: "the file is cut short")
        case .file: break
        }
        let blocks = BlockReader(
            files: files, name: reference.name, byteCount: byteCount - footerBytes, blockBytesMax: options.blockBytesMax
        )
        let footer = try Memory(count: footerBytes, path: files.path)
        let place = byteCount - footerBytes
        let target = UnsafeMutableRawBufferPointer(start: footer.start, count: footerBytes)
        if case .unreadable(let reason) = try files.read(reference.name, at: place, into: target) {
            return .bad(.footer, offset: place, byteCount: footerBytes, reason: reason)
        }
        var end = Scanner(footer.bytes, from: footerBytes - 8)
        var scanner = Scanner(footer.bytes)
        guard end.fixed64() == magic, let meta = BlockHandle(&scanner), let handle = BlockHandle(&scanner) else {
            return .bad(.footer, offset: place, byteCount: footerBytes, reason: "it is no table")
        }
        switch try blocks.read(handle) {
        case .bad(let reason):
            return .bad(.index, offset: handle.offset, byteCount: handle.byteCount, reason: reason)
        case .block(let index):
            guard let last = try lastKey(of: index, blocks) else {
                return .bad(.index, offset: handle.offset, byteCount: handle.byteCount, reason: "it is no index")
            }
            let damage = try filterDamage(meta, blocks, reference)
            return .table(TableFile(blocks: blocks, index: index, last: last.key, filterDamage: damage))
        }
    }

    /// Goes over the whole index; nil if it is none.
    private static func lastKey(of index: Memory, _ blocks: BlockReader) throws(SalvageError) -> (key: [UInt8]?, ())? {
        guard var cursor = try BlockCursor(index, path: blocks.files.path) else { return nil }
        var last: [UInt8]?
        while true {
            switch try cursor.next(path: blocks.files.path) {
            case .end: return (last, ())
            case .malformed: return nil
            case .entry:
                var scanner = Scanner(cursor.value)
                guard let key = InternalKey(cursor.key.bytes), let handle = BlockHandle(&scanner),
                    handle.fits(before: blocks.byteCount)
                else { return nil }
                if let last,
                    !last.withUnsafeBytes({ bytes in InternalKey(bytes).map { InternalKey.isLess($0, key) } ?? false })
                {
                    return nil
                }
                last = Array(cursor.key.bytes)
            }
        }
    }

    /// Looks at the filter and what leads to it, which nobody needs here.
    private static func filterDamage(
        _ meta: BlockHandle, _ blocks: BlockReader, _ reference: TableReference
    ) throws(SalvageError) -> SalvageDamage? {
        func damage(_ handle: BlockHandle, _ reason: String) -> SalvageDamage {
            SalvageDamage(
                part: .filter, file: reference.name, offset: handle.offset, byteCount: handle.byteCount, reason: reason,
                range: nil)
        }
        guard case .block(let block) = try blocks.read(meta),
            var cursor = try BlockCursor(block, path: blocks.files.path)
        else { return damage(meta, "what leads to the filter cannot be read") }
        while true {
            switch try cursor.next(path: blocks.files.path) {
            case .end: return nil
            case .malformed: return damage(meta, "what leads to the filter cannot be read")
            case .entry:
                var scanner = Scanner(cursor.value)
                guard let handle = BlockHandle(&scanner) else { return damage(meta, "it leads nowhere") }
                if case .bad(let reason) = try blocks.read(handle) { return damage(handle, reason) }
            }
        }
    }
}
