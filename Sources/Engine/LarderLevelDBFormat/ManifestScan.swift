import LarderPlatform

/// The content of LevelDB's manifest: the files that it names, and the length of its valid part.
///
/// A manifest is a log of edits. Each edit is a sequence of fields with a tag; integers are varints. The format is
/// described in LevelDB's doc/impl.md and db/version_edit.cc.
package struct ManifestScan: Hashable, Sendable {
    /// The number in the manifest's file name.
    package let number: UInt64
    package var log = LogScan()
    /// The lowest number of a log that LevelDB still needs. In addition, LevelDB needs the log ``previousLogNumber``.
    package var logNumber: UInt64 = 0
    package var previousLogNumber: UInt64 = 0
    /// The next file number: files that are created later have this number or a higher one.
    package var nextFileNumber: UInt64 = 0
    package var tables: [UInt64: Table] = [:]
    /// The name of the order of the keys; nil if no edit names it.
    package private(set) var comparator: String?
    /// Whether an edit has an unknown tag or is malformed. The other properties are then unreliable.
    package private(set) var hasUnknownEdit = false
    private var hasLogNumber = false
    private var hasLastSequence = false

    /// A table. The keys are LevelDB's internal keys, which consist of the user's key and eight more bytes.
    package struct Table: Hashable, Sendable {
        package var level: Int
        package var byteCount: Int
        /// The smallest and largest key; empty if unknown. An edit always has them.
        package var smallest: [UInt8]
        package var largest: [UInt8]

        package init(level: Int, byteCount: Int, smallest: [UInt8], largest: [UInt8]) {
            (self.level, self.byteCount, self.smallest, self.largest) = (level, byteCount, smallest, largest)
        }

        /// The table's first key, without the eight bytes that LevelDB appends to each key.
        package var first: ArraySlice<UInt8> { smallest.dropLast(8) }
        package var last: ArraySlice<UInt8> { largest.dropLast(8) }
    }

    package init(number: UInt64) { self.number = number }

    /// Whether the manifest has all fields that LevelDB requires to open the database.
    package var isUsable: Bool { hasLogNumber && nextFileNumber > 0 && hasLastSequence }

    /// Whether LevelDB needs the log with this number when it opens.
    package func needs(log number: UInt64) -> Bool { number >= logNumber || number == previousLogNumber && number != 0 }

    // MARK: Reading

    /// Reads the manifest that `CURRENT` names, without changing it.
    /// - Returns: nil if `CURRENT` or its manifest is missing or damaged.
    package static func scan(directory: String) throws(FileError) -> ManifestScan? {
        guard let name = try current(directory) else { return nil }
        return try scan(directory: directory, name: name)
    }

    /// Returns the name of the manifest in `CURRENT`; nil if `CURRENT` is missing or names none.
    package static func current(_ directory: String) throws(FileError) -> String? {
        let path = directory + "/" + FileNames.current
        return try FileSystem.read(path, bytesMax: FileNames.currentBytesMax).flatMap {
            FileNames.manifest(inCurrent: $0)
        }
    }

    private static func scan(directory: String, name: String) throws(FileError) -> ManifestScan? {
        guard let number = FileNames.manifestNumber(name) else { return nil }
        var result = ManifestScan(number: number)
        do throws(FileError) {
            try result.read(directory, name)
        } catch {
            if error.number == ENOENT { return nil }
            throw error
        }
        return result
    }

    /// Reads the edits that LevelDB has appended since the last call. If `CURRENT` now names another manifest, reads
    /// that one. If LevelDB is still writing the last edit, the next call reads it.
    /// - Returns: whether anything has changed.
    package mutating func update(directory: String) throws(FileError) -> Bool {
        guard let name = try Self.current(directory) else { return false }
        guard FileNames.manifestNumber(name) == number else {
            guard let other = try Self.scan(directory: directory, name: name) else { return false }
            self = other
            return true
        }
        let previous = log.goodBytes
        try read(directory, name)
        return log.goodBytes != previous
    }

    /// Reads the edits behind the valid part that was read before.
    private mutating func read(_ directory: String, _ name: String) throws(FileError) {
        var edits: [[UInt8]] = []
        log = try LogScan.scan("\(directory)/\(name)", from: log.goodBytes) { edit in
            edits.append(edit)
            return nil
        }
        for edit in edits { edit.withUnsafeBytes { if !apply($0) { hasUnknownEdit = true } } }
    }

    // MARK: Edits

    /// The tags of an edit's fields. On disk: do not change.
    enum Tag: UInt64 {
        case comparator = 1
        case logNumber = 2
        case nextFileNumber = 3
        case lastSequence = 4
        case compactPointer = 5
        case deletedFile = 6
        case newFile = 7
        case previousLogNumber = 9
    }

    private static let levelMax: UInt64 = 6

    /// Applies an edit. Returns false, and changes nothing, if the bytes are not an edit.
    package mutating func apply(_ edit: UnsafeRawBufferPointer) -> Bool {
        var scanner = Scanner(edit)
        var changed = self
        // Collect the added tables, and add them at the end: LevelDB applies the deletions of an edit first.
        var added: [(number: UInt64, table: Table)] = []
        while !scanner.isAtEnd {
            guard let tag = scanner.varint().flatMap({ Tag(rawValue: $0) }),
                changed.apply(tag, &scanner, &added)
            else { return false }
        }
        for (number, table) in added { changed.tables[number] = table }
        self = changed
        return true
    }

    private mutating func apply(
        _ tag: Tag, _ scanner: inout Scanner, _ added: inout [(number: UInt64, table: Table)]
    ) -> Bool {
        switch tag {
        case .comparator:
            guard let name = scanner.prefixed() else { return false }
            comparator = String(decoding: name, as: UTF8.self)
        case .logNumber:
            hasLogNumber = true
            return Self.read(&logNumber, &scanner)
        case .previousLogNumber: return Self.read(&previousLogNumber, &scanner)
        case .nextFileNumber: return Self.read(&nextFileNumber, &scanner)
        case .lastSequence:
            hasLastSequence = true
            return scanner.varint() != nil
        case .compactPointer: return Self.level(&scanner) != nil && scanner.prefixed() != nil
        case .deletedFile:
            guard let level = Self.level(&scanner), let number = scanner.varint() else { return false }
            if tables[number]?.level == level { tables[number] = nil }
        case .newFile:
            guard let table = Self.table(&scanner) else { return false }
            added.append(table)
        }
        return true
    }

    private static func read(_ number: inout UInt64, _ scanner: inout Scanner) -> Bool {
        guard let found = scanner.varint() else { return false }
        number = found
        return true
    }

    private static func level(_ scanner: inout Scanner) -> Int? {
        scanner.varint().flatMap { $0 <= levelMax ? Int($0) : nil }
    }

    private static func table(_ scanner: inout Scanner) -> (number: UInt64, table: Table)? {
        guard let level = level(&scanner), let number = scanner.varint(), let byteCount = scanner.length(),
            let smallest = scanner.prefixed(), let largest = scanner.prefixed(),
            let first = InternalKey(smallest), let last = InternalKey(largest), !InternalKey.isLess(last, first)
        else { return nil }
        return (number, Table(level: level, byteCount: byteCount, smallest: Array(smallest), largest: Array(largest)))
    }
}

/// Finds the manifest that `CURRENT` should name, if the machine failed while LevelDB was changing to a new manifest.
///
/// When LevelDB opens a database, it writes a new manifest, syncs the manifest and the directory, and replaces
/// `CURRENT` by a rename. It then removes the previous manifest and the logs whose content is now in tables, without
/// first syncing the directory. So if the machine fails, some file systems may lose the rename but keep the removals.
/// The new manifest is always complete at that time.
extension ManifestScan {
    /// Returns the manifest that `CURRENT` should name but does not: the manifest with the highest number. All files
    /// that it names must exist, and `CURRENT` must be unusable. That is, `CURRENT` is missing or truncated, or it
    /// names an older manifest, some of whose files are missing.
    /// - Returns: the name and content of the manifest; nil if it is uncertain whether `CURRENT` is wrong.
    package static func successor(directory: String) throws(FileError) -> (name: String, scan: ManifestScan)? {
        let names: Set<String>
        do throws(FileError) { names = Set(try FileSystem.list(directory)) } catch {
            if error.number == ENOENT { return nil }
            throw error
        }
        guard
            let name = names.max(by: { FileNames.manifestNumber($0) ?? 0 < FileNames.manifestNumber($1) ?? 0 }),
            let highest = FileNames.manifestNumber(name)
        else { return nil }
        if let named = try current(directory) {
            guard let number = FileNames.manifestNumber(named), number < highest else { return nil }
            // If all files of CURRENT's manifest exist, it can be used: it has the same content as the newer manifest.
            if try scan(directory: directory, name: named)?.isComplete(among: names) ?? false { return nil }
        }
        guard let scan = try scan(directory: directory, name: name), scan.isComplete(among: names) else { return nil }
        return (name, scan)
    }

    /// Whether LevelDB could open the database with this manifest: the manifest is undamaged or only truncated, and the
    /// files that it names exist. False for the first manifest of a new database, which names no log.
    private func isComplete(among names: Set<String>) -> Bool {
        guard log.problem == nil || log.isCutShort, !hasUnknownEdit, logNumber > 0, nextFileNumber > 0 else {
            return false
        }
        guard Set(names.compactMap(FileNames.logNumber)).contains(logNumber) else { return false }
        return Set(names.compactMap(FileNames.tableNumber)).isSuperset(of: tables.keys)
    }
}
