import LarderLevelDBFormat

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
