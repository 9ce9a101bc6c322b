import LarderLevelDBFormat
import LarderPlatform

/// Reads the entries of tables that do not overlap, one table after another. Reads a block only when the merge reaches
/// it.
final class TableRun: MergeSource {
    private let files: SalvageFiles
    private let options: SalvageOptions
    private let tables: [TableReference]
    private unowned let sink: SalvageSink

    private var tableIndex = 0
    /// The table at `tableIndex`; nil until it is opened.
    private var open: Open?
    /// A cursor in the block that is being read; nil if the next block was not read yet.
    private var block: BlockCursor?
    /// The key of the current entry; if no entry is loaded, a lower bound of the next key.
    private let place: Memory

    private(set) var sequence: UInt64 = 0
    private(set) var isLoaded = false
    private var isRemoval = false

    private struct Open {
        let file: TableFile
        /// A cursor in the table's index, at the entry of the block that is being read or is read next.
        var index: BlockCursor
        /// The key of the previous index entry; nil for the first block. All keys of the current block are greater.
        var previous: [UInt8]?
    }

    init(_ tables: [TableReference], files: SalvageFiles, options: SalvageOptions, sink: SalvageSink)
        throws(SalvageError)
    {
        self.tables = tables
        self.files = files
        self.options = options
        self.sink = sink
        place = try Memory(count: 0, path: files.path)
        try enter()
    }

    var isAtEnd: Bool { tableIndex == tables.count }
    var position: UnsafeRawBufferPointer { place.bytes }
    var origin: Origin { isAtEnd ? .log(number: 0) : tables[tableIndex].origin }
    var value: UnsafeRawBufferPointer? { isRemoval ? nil : block?.value }

    func step() throws(SalvageError) {
        guard !isAtEnd else { return }
        if block != nil {
            try nextEntry()
        } else if open != nil {
            try readBlock()
        } else {
            try openTable()
        }
    }

    // MARK: Tables

    /// Sets the position to the first key of the table at `tableIndex`, if there is one. Does not open the table.
    private func enter() throws(SalvageError) {
        block = nil
        open = nil
        isLoaded = false
        guard !isAtEnd else { return }
        try move(to: tables[tableIndex].range.lower)
    }

    private func leaveTable() throws(SalvageError) {
        tableIndex += 1
        try enter()
    }

    private func move(to userKey: [UInt8]) throws(SalvageError) {
        place.truncate(to: 0)
        try place.append(userKey, path: files.path)
    }

    private func openTable() throws(SalvageError) {
        let table = tables[tableIndex]
        switch try TableFile.open(table, files: files, options: options) {
        case .bad(let defect): try lose(defect, after: nil)
        case .table(let file):
            for damage in file.harmless { sink.lost(damage, nil) }
            // If the table ends before the largest key in the manifest, the file is that of another table.
            if file.defect == nil, let largest = table.largest, !Self.reaches(file.last, largest) {
                return try loseTable()
            }
            guard let index = try BlockCursor(file.index, path: files.path) else { return try leaveTable() }
            open = Open(file: file, index: index, previous: nil)
            try nextBlock()
        }
    }

    private static func reaches(_ last: [UInt8]?, _ largest: [UInt8]) -> Bool {
        guard let last else { return false }
        return last.withUnsafeBytes { last in
            largest.withUnsafeBytes { largest in
                guard let last = InternalKey(last), let largest = InternalKey(largest) else { return false }
                return !InternalKey.isLess(last, largest)
            }
        }
    }

    private func loseTable() throws(SalvageError) {
        let defect = TableFile.Defect(
            part: .table, offset: 0, byteCount: tables[tableIndex].byteCount,
            reason: "it is not the table that the manifest describes")
        try lose(defect, after: nil)
    }

    /// Reports the keys that the rest of the table may contain as lost, and moves to the next table.
    /// - Parameter last: the last key that was found, in LevelDB's internal form; nil if no key was found.
    private func lose(_ defect: TableFile.Defect, after last: [UInt8]?) throws(SalvageError) {
        let table = tables[tableIndex]
        var range: KeyRange? = table.range
        if let last { range?.lower = KeyRange.successor(Array(last.dropLast(8))) }
        if let largest = table.largest, Self.reaches(last, largest) { range = nil }
        range = range?.trimmed(without: options.ignoredFirstBytes)
        let damage = SalvageDamage(
            part: defect.part, file: table.name, offset: defect.offset, byteCount: defect.byteCount,
            reason: defect.reason, range: range)
        sink.lost(damage, range.map { gap($0, lowerSequence: smallestSequence(table)) })
        try leaveTable()
    }

    private func smallestSequence(_ table: TableReference) -> UInt64? {
        table.smallest?.withUnsafeBytes { InternalKey($0)?.sequence }
    }

    private func gap(_ range: KeyRange, lowerSequence: UInt64?) -> Gap {
        let table = tables[tableIndex]
        // `lowerSequence` belongs to the table's first key, so it applies only if the range still begins with this key.
        let isLower = range.lower == table.range.lower
        return Gap(
            range: range, hidden: .table(number: table.number, level: table.level),
            lowerSequence: isLower ? lowerSequence : nil)
    }

    // MARK: Blocks

    /// Moves to the index entry of the next block, and to the next table after the last block.
    private func nextBlock() throws(SalvageError) {
        block = nil
        isLoaded = false
        guard open != nil else { return }
        // The index has no malformed entries: it was checked when the table was opened.
        if case .entry? = try open?.index.next(path: files.path) { return }
        if let open, let defect = open.file.defect { try lose(defect, after: open.previous) } else { try leaveTable() }
    }

    private func leaveBlock() throws(SalvageError) {
        guard let key = open?.index.key else { return }
        let previous = Array(key.bytes)
        open?.previous = previous
        try move(to: Array(previous.dropLast(8)))
        try nextBlock()
    }

    private func readBlock() throws(SalvageError) {
        guard let open else { return }
        var scanner = Scanner(open.index.value)
        guard let handle = BlockHandle(&scanner) else { return try leaveBlock() }
        if isIgnored(open) { return try leaveBlock() }
        switch try open.file.blocks.read(handle) {
        case .bad(let reason): try loseBlock(handle, reason)
        case .block(let memory), .repaired(let memory):
            guard let cursor = try BlockCursor(memory, path: files.path) else {
                return try loseBlock(handle, "it is not a block")
            }
            block = cursor
            try nextEntry()
        }
    }

    /// Whether all keys of the block begin with a byte in ``SalvageOptions/ignoredFirstBytes``.
    private func isIgnored(_ open: Open) -> Bool {
        guard let first = (open.previous ?? tables[tableIndex].smallest)?.dropLast(8).first else { return false }
        return options.ignoredFirstBytes.contains(first) && open.index.key.bytes.dropLast(8).first == first
    }

    /// Reports as lost the keys that the current block may contain, and moves to the next block.
    /// - Parameter key: the key up to which the block was read: only greater keys are lost. Nil if nothing was read.
    private func loseBlock(_ handle: BlockHandle, _ reason: String, behind key: [UInt8]? = nil) throws(SalvageError) {
        guard let open else { return }
        let table = tables[tableIndex]
        var range = table.range
        if let previous = key ?? open.previous.map({ Array($0.dropLast(8)) }) {
            range.lower = KeyRange.successor(previous)
        }
        let upper = KeyRange.successor(Array(open.index.key.bytes.dropLast(8)))
        // The range ends at the block's key in the index or at the table's last key, whichever is smaller. For the last
        // block, the key in the index may be greater.
        if range.upper.map({ KeyRange.isLess(upper, $0) }) ?? true { range.upper = upper }
        let trimmed = range.trimmed(without: options.ignoredFirstBytes)
        let damage = SalvageDamage(
            part: .dataBlock, file: table.name, offset: handle.offset,
            byteCount: handle.byteCount + BlockHandle.trailerBytes, reason: reason, range: trimmed)
        sink.lost(damage, trimmed.map { gap($0, lowerSequence: key == nil ? smallestSequence(table) : nil) })
        try leaveBlock()
    }

    // MARK: Entries

    private func nextEntry() throws(SalvageError) {
        guard let open, var cursor = block else { return }
        let step = try cursor.next(path: files.path)
        block = cursor
        let isFirst = !isLoaded
        if case .end = step { return try leaveBlock() }
        guard case .entry = step, let key = InternalKey(cursor.key.bytes), key.kind <= InternalKey.value,
            isInOrder(key, open, isFirst: isFirst)
        else {
            var scanner = Scanner(open.index.value)
            guard let handle = BlockHandle(&scanner) else { return try leaveBlock() }
            if isFirst, open.previous == nil, let smallest = tables[tableIndex].smallest, case .entry = step,
                smallest != Array(cursor.key.bytes)
            {
                return try loseTable()
            }
            return try loseBlock(handle, "its keys are out of order", behind: isFirst ? nil : Array(place.bytes))
        }
        place.truncate(to: 0)
        try place.append(key.userKey, path: files.path)
        sequence = key.sequence
        isRemoval = key.kind == InternalKey.removal
        isLoaded = true
    }

    /// Whether a key follows the previous one and is within the bounds that the index gives for the block. The table's
    /// first key must be equal to the one in the manifest.
    private func isInOrder(_ key: InternalKey, _ open: Open, isFirst: Bool) -> Bool {
        guard let last = InternalKey(open.index.key.bytes), !InternalKey.isLess(last, key) else { return false }
        if !isFirst {
            let order = ByteOrder.compare(place.bytes, key.userKey)
            return order < 0 || order == 0 && key.sequence < sequence
        }
        guard let previous = open.previous else {
            guard let smallest = tables[tableIndex].smallest else { return true }
            return smallest.withUnsafeBytes {
                InternalKey($0).map { !InternalKey.isLess(key, $0) && !InternalKey.isLess($0, key) }
            }
                ?? false
        }
        return previous.withUnsafeBytes { InternalKey($0).map { InternalKey.isLess($0, key) } } ?? false
    }
}

extension TableRun {
    /// Distributes tables to as few runs as possible. The tables of a run do not overlap, so they can be read one after
    /// another, with only one block in memory per run.
    static func runs(of tables: [TableReference], files: SalvageFiles, options: SalvageOptions)
        throws(SalvageError) -> [[TableReference]]
    {
        var known: [TableReference] = []
        for table in tables { known.append(try probed(table, files, options)) }
        known.sort { left, right in
            let (first, second) = (left.range.lower, right.range.lower)
            return first != second ? KeyRange.isLess(first, second) : left.number < right.number
        }
        var runs: [[TableReference]] = []
        for table in known {
            let place = runs.firstIndex { run in
                guard let upper = run.last?.range.upper else { return false }
                return !KeyRange.isLess(table.range.lower, upper)
            }
            if let place { runs[place].append(table) } else { runs.append([table]) }
        }
        return runs
    }

    /// Determines the key range of a table that is not in a manifest: the last key from the index, and the first key
    /// from the first block.
    private static func probed(_ table: TableReference, _ files: SalvageFiles, _ options: SalvageOptions)
        throws(SalvageError) -> TableReference
    {
        guard table.level == nil, case .table(let file) = try TableFile.open(table, files: files, options: options),
            let last = file.last, var index = try BlockCursor(file.index, path: files.path),
            case .entry = try index.next(path: files.path)
        else { return table }
        var probed = table
        if file.defect == nil { probed.largest = last }
        var scanner = Scanner(index.value)
        guard let handle = BlockHandle(&scanner), case .block(let block) = try file.blocks.read(handle),
            var cursor = try BlockCursor(block, path: files.path), case .entry = try cursor.next(path: files.path),
            InternalKey(cursor.key.bytes) != nil
        else { return probed }
        probed.smallest = Array(cursor.key.bytes)
        return probed
    }
}
