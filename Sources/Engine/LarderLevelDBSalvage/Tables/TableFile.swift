import LarderLevelDBFormat

/// A table file to read, and what is known about it before it is opened.
struct TableReference {
    let number: UInt64
    let name: String
    /// The table's level in LevelDB; nil if the table is not in a manifest. In that case the keys below may be unknown
    /// too.
    let level: Int?
    /// The length in bytes according to the manifest; the length of the file if the table is not in a manifest.
    let byteCount: Int
    /// The smallest and largest key, in LevelDB's internal form; nil if unknown.
    var smallest: [UInt8]?
    var largest: [UInt8]?

    var origin: Origin { .table(number: number, level: level) }

    /// The range of all keys that the table may have.
    var range: KeyRange {
        KeyRange(
            lower: smallest.map { Array($0.dropLast(8)) } ?? [],
            upper: largest.map { KeyRange.successor(Array($0.dropLast(8))) })
    }
}

/// An open table file whose blocks are known.
struct TableFile {
    /// The size of a table's footer. On disk: do not change.
    private static let footerBytes = 48
    private static let magic: UInt64 = 0xDB47_7524_8B80_FB57

    let blocks: BlockReader
    let index: Memory
    /// The last key in the index; nil if the index has no entries.
    let last: [UInt8]?
    /// Damage that loses no entry: damage to the Bloom filter, or a single wrong bit that was corrected.
    var harmless: [SalvageDamage] = []
    /// The reason why the table's own index cannot be used. In that case ``index`` contains the blocks that
    /// ``BlockSearch`` has found, and there may have been more of them.
    var defect: Defect?

    /// A part of a table that cannot be read.
    struct Defect {
        let part: SalvageDamage.Part
        let offset: Int
        let byteCount: Int
        let reason: String
    }

    enum Outcome {
        case table(TableFile)
        case bad(Defect)
    }

    /// Opens a table. If its own index cannot be used, searches the file for blocks.
    static func open(
        _ reference: TableReference, files: SalvageFiles, options: SalvageOptions
    ) throws(SalvageError) -> Outcome {
        let outcome = try openByIndex(reference, files, options)
        guard case .bad(let defect) = outcome, case .file(let found) = try files.look(at: reference.name) else {
            return outcome
        }
        let blocks = BlockReader(
            files: files, name: reference.name, byteCount: min(found, reference.byteCount),
            blockBytesMax: options.blockBytesMax)
        var search = try BlockSearch(blocks)
        guard let index = try search.run() else { return outcome }
        return .table(TableFile(blocks: blocks, index: index, last: search.last, defect: defect))
    }

    private static func openByIndex(
        _ reference: TableReference, _ files: SalvageFiles, _ options: SalvageOptions
    ) throws(SalvageError) -> Outcome {
        let byteCount = reference.byteCount
        switch try files.look(at: reference.name) {
        case .missing: return .bad(Defect(part: .table, offset: 0, byteCount: byteCount, reason: "the file is missing"))
        case .noFile: return .bad(Defect(part: .table, offset: 0, byteCount: byteCount, reason: "it is not a file"))
        case .file(let found) where found < byteCount || byteCount < footerBytes:
            return .bad(
                Defect(part: .table, offset: found, byteCount: byteCount - found, reason: "the file is cut short"))
        case .file: break
        }
        let blocks = BlockReader(
            files: files, name: reference.name, byteCount: byteCount - footerBytes, blockBytesMax: options.blockBytesMax
        )
        let footer = try Memory(count: footerBytes, path: files.path)
        let place = byteCount - footerBytes
        let target = UnsafeMutableRawBufferPointer(start: footer.start, count: footerBytes)
        if let reason = try files.read(reference.name, at: place, into: target) {
            return .bad(Defect(part: .footer, offset: place, byteCount: footerBytes, reason: reason))
        }
        guard let found = try index(by: footer, at: place, blocks) else {
            return .bad(Defect(part: .footer, offset: place, byteCount: footerBytes, reason: "it is not a table"))
        }
        func bad(_ reason: String) -> Outcome {
            .bad(
                Defect(
                    part: .index, offset: found.handle.offset, byteCount: found.handle.byteCount, reason: reason))
        }
        switch found.block {
        case .bad(let reason): return bad(reason)
        case .block(let index), .repaired(let index):
            var harmless = found.harmless.map { part, offset, byteCount in
                SalvageDamage(
                    part: part, file: reference.name, offset: offset, byteCount: byteCount, reason: "a flipped bit",
                    range: nil)
            }
            guard let last = try lastKey(of: index, blocks, isGapless: !harmless.isEmpty) else {
                return bad("it is not an index")
            }
            if let damage = try filterDamage(found.meta, blocks, reference) { harmless.append(damage) }
            return .table(TableFile(blocks: blocks, index: index, last: last, harmless: harmless))
        }
    }

    /// The result of reading the footer and the index. `harmless` are the parts of the file in which a wrong bit was
    /// corrected.
    private typealias Found = (
        meta: BlockHandle, handle: BlockHandle, block: BlockReader.Outcome,
        harmless: [(SalvageDamage.Part, offset: Int, byteCount: Int)]
    )

    /// Finds and reads the index, even if one bit of the footer or of the index is wrong. Returns nil if the bytes are
    /// not a footer.
    private static func index(by footer: Memory, at place: Int, _ blocks: BlockReader) throws(SalvageError) -> Found? {
        if let (meta, handle) = handles(footer) {
            let block = try blocks.read(handle, repairs: true)
            switch block {
            case .block: return (meta, handle, block, [])
            case .repaired:
                let place = (SalvageDamage.Part.index, offset: handle.offset, byteCount: handle.byteCount)
                return (meta, handle, block, [place])
            // The index is unreadable. If the index is the last block, the footer's reference to it is right, and the
            // index itself is damaged.
            case .bad where handle.ends(at: blocks.byteCount):
                return (meta, handle, block, [])
            case .bad: break
            }
        }
        for bit in 0..<(footerBytes * 8) {
            footer.flip(1 << UInt8(bit % 8), at: bit / 8)
            defer { footer.flip(1 << UInt8(bit % 8), at: bit / 8) }
            // The index must be the last block of the file. In addition, its checksum must be valid: only this proves
            // that the corrected footer is right.
            guard let (meta, handle) = handles(footer), handle.ends(at: blocks.byteCount),
                case .block(let block) = try blocks.read(handle)
            else { continue }
            return (meta, handle, .block(block), [(.footer, offset: place, byteCount: footerBytes)])
        }
        return nil
    }

    private static func handles(_ footer: Memory) -> (meta: BlockHandle, index: BlockHandle)? {
        var end = Scanner(footer.bytes, from: footerBytes - 8)
        var scanner = Scanner(footer.bytes)
        guard end.fixed64() == magic, let meta = BlockHandle(&scanner), let index = BlockHandle(&scanner) else {
            return nil
        }
        return (meta, index)
    }

    /// Reads the whole index. Returns its last key, which is nil if it has no entries; nil if the bytes are not a valid
    /// index.
    /// - Parameter isGapless: whether to check that the blocks follow each other without gaps from the beginning of the
    ///   file, as LevelDB writes them.
    private static func lastKey(of index: Memory, _ blocks: BlockReader, isGapless: Bool) throws(SalvageError)
        -> [UInt8]??
    {
        guard var cursor = try BlockCursor(index, path: blocks.files.path) else { return nil }
        var last: [UInt8]?
        var end = 0
        while true {
            switch try cursor.next(path: blocks.files.path) {
            case .end: return .some(last)
            case .malformed: return nil
            case .entry:
                var scanner = Scanner(cursor.value)
                guard let key = InternalKey(cursor.key.bytes), let handle = BlockHandle(&scanner),
                    handle.fits(before: blocks.byteCount), key.isBehind(last), !isGapless || handle.offset == end
                else { return nil }
                last = Array(cursor.key.bytes)
                end = handle.offset + handle.byteCount + BlockHandle.trailerBytes
            }
        }
    }

    /// Checks the table's Bloom filter and the block that refers to it. A salvage does not use them, so damage to them
    /// is only reported.
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
        else { return damage(meta, "the reference to the filter cannot be read") }
        while true {
            switch try cursor.next(path: blocks.files.path) {
            case .end: return nil
            case .malformed: return damage(meta, "the reference to the filter cannot be read")
            case .entry:
                var scanner = Scanner(cursor.value)
                guard let handle = BlockHandle(&scanner) else { return damage(meta, "its reference is malformed") }
                if case .bad(let reason) = try blocks.read(handle) { return damage(handle, reason) }
            }
        }
    }
}
