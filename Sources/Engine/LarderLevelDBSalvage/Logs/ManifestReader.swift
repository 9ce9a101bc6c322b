/// A table, as described in the manifest.
struct TableEntry {
    let number: UInt64
    let level: Int
    let byteCount: Int
    /// The smallest and largest key, in LevelDB's internal form; nil if unknown.
    let smallest: [UInt8]?
    let largest: [UInt8]?
}

/// The content of a manifest, up to its first damage.
struct ManifestContents {
    var tables: [UInt64: TableEntry] = [:]
    var logNumber: UInt64?
    var previousLogNumber: UInt64?
    var nextFileNumber: UInt64?
    var lastSequence: UInt64?
    var comparator: String?
    /// The number of valid edits.
    var edits = 0
    /// The locations of wrong bits that were corrected. The edits are used, because they are valid after the
    /// correction.
    var repaired: [LogHole] = []
    /// The damage at which reading stopped; nil if the whole file was read.
    var damage: LogHole?
    /// Whether the damage is only that the file ends within its last edit. LevelDB had not applied this edit yet.
    var isTorn = false

    /// Whether the manifest has all fields that LevelDB requires to open the database.
    var isUsable: Bool { logNumber != nil && nextFileNumber != nil && lastSequence != nil }
}

extension RecordedManifest {
    /// The recorded content, as if it had been read from a manifest.
    var contents: ManifestContents {
        var contents = ManifestContents()
        for (number, table) in tables {
            contents.tables[number] = TableEntry(
                number: number, level: table.level, byteCount: table.byteCount, smallest: table.smallest,
                largest: table.largest)
        }
        contents.logNumber = logNumber
        contents.previousLogNumber = previousLogNumber
        contents.nextFileNumber = nextFileNumber
        return contents
    }
}

/// Reads a manifest: a log file of edits, each a series of tagged fields.
struct ManifestReader {
    static let comparator = "leveldb.BytewiseComparator"
    private static let levelMax: UInt64 = 6
    /// The maximum size of a manifest in bytes: 1 GiB. No valid manifest reaches this limit.
    private static let byteCountMax = 1 << 30

    /// The tags of an edit's fields. On disk: do not change.
    private enum Tag: UInt64 {
        case comparator = 1
        case logNumber = 2
        case nextFileNumber = 3
        case lastSequence = 4
        case compactPointer = 5
        case deletedFile = 6
        case newFile = 7
        case previousLogNumber = 9
    }

    static func read(_ pieces: LogPieces) throws(SalvageError) -> ManifestContents {
        let (units, _) = try LogAssembler.units(of: pieces, byteCountMax: byteCountMax)
        var contents = ManifestContents()
        for (index, unit) in units.enumerated() {
            switch unit {
            case .lost(let hole):
                contents.damage = hole
                contents.isTorn = hole.isTorn && index == units.count - 1
                return contents
            case .record(let record):
                guard record.isWhole else {
                    contents.damage =
                        record.holes.first?.hole
                        ?? LogHole(
                            offset: record.offset, byteCount: pieces.byteCount - record.offset,
                            reason: "the file ends within an edit", claim: nil, payloadCount: nil, isTorn: true)
                    contents.isTorn = index == units.count - 1 && record.holes.allSatisfy { $0.hole.isTorn }
                    return contents
                }
                guard apply(record.front, to: &contents) else {
                    contents.damage = LogHole(
                        offset: record.offset, byteCount: record.memory.count, reason: "the record is not an edit",
                        claim: nil, payloadCount: nil, isTorn: false)
                    return contents
                }
                contents.edits += 1
                contents.repaired += record.repaired.map(\.hole)
            }
        }
        return contents
    }

    /// Applies an edit. Returns false, and changes nothing, if the bytes are not an edit.
    static func apply(_ edit: UnsafeRawBufferPointer, to contents: inout ManifestContents) -> Bool {
        var scanner = Scanner(edit)
        var changed = contents
        // Collect the added tables, and add them at the end: LevelDB applies the deletions of an edit first.
        var added: [TableEntry] = []
        while !scanner.isAtEnd {
            guard let tag = scanner.varint().flatMap({ Tag(rawValue: $0) }),
                apply(tag, &scanner, &changed, &added)
            else { return false }
        }
        for table in added { changed.tables[table.number] = table }
        contents = changed
        return true
    }

    private static func apply(
        _ tag: Tag, _ scanner: inout Scanner, _ contents: inout ManifestContents, _ added: inout [TableEntry]
    ) -> Bool {
        switch tag {
        case .comparator:
            guard let name = scanner.prefixed() else { return false }
            contents.comparator = String(decoding: name, as: UTF8.self)
        case .logNumber:
            guard let number = scanner.varint() else { return false }
            contents.logNumber = number
        case .previousLogNumber:
            guard let number = scanner.varint() else { return false }
            contents.previousLogNumber = number
        case .nextFileNumber:
            guard let number = scanner.varint() else { return false }
            contents.nextFileNumber = number
        case .lastSequence:
            guard let sequence = scanner.varint() else { return false }
            contents.lastSequence = sequence
        case .compactPointer:
            guard level(&scanner) != nil, scanner.prefixed() != nil else { return false }
        case .deletedFile:
            guard let level = level(&scanner), let number = scanner.varint() else { return false }
            if contents.tables[number]?.level == level { contents.tables[number] = nil }
        case .newFile:
            guard let table = table(&scanner) else { return false }
            added.append(table)
        }
        return true
    }

    private static func level(_ scanner: inout Scanner) -> Int? {
        scanner.varint().flatMap { $0 <= levelMax ? Int($0) : nil }
    }

    private static func table(_ scanner: inout Scanner) -> TableEntry? {
        guard let level = level(&scanner), let number = scanner.varint(), let byteCount = scanner.length(),
            let smallest = scanner.prefixed(), let largest = scanner.prefixed(),
            let first = InternalKey(smallest), let last = InternalKey(largest), !InternalKey.isLess(last, first)
        else { return nil }
        return TableEntry(
            number: number, level: level, byteCount: byteCount, smallest: Array(smallest), largest: Array(largest))
    }
}
