import LarderLevelDBFormat

/// The readable part of a log record.
struct LogRecord {
    /// The readable bytes of the record, without the missing bytes in between.
    let memory: Memory
    /// The offset of the record in the file, or that of its first readable part if the beginning is missing.
    let offset: Int
    /// The missing parts, each with the position in `memory` at which its bytes are missing.
    var holes: [(position: Int, hole: LogHole)] = []
    /// The parts in which one wrong bit was corrected: their ranges in `memory`, and their locations in the file. Keys
    /// in these parts are only used to determine which keys are lost, and values are not used.
    var repaired: [(range: Range<Int>, hole: LogHole)] = []
    /// False if the beginning is missing.
    let hasHead: Bool
    /// False if the end is missing.
    var hasEnd = false

    var isWhole: Bool { hasHead && hasEnd && holes.isEmpty }

    /// The bytes before the first missing part; empty if the beginning is missing. If any part is missing, parts with
    /// corrected bits count as missing too.
    var front: UnsafeRawBufferPointer {
        guard hasHead else { return UnsafeRawBufferPointer(rebasing: memory.bytes[..<0]) }
        if holes.isEmpty, hasEnd { return memory.bytes }
        let count = min(holes.first?.position ?? memory.count, repaired.first?.range.lowerBound ?? memory.count)
        return UnsafeRawBufferPointer(rebasing: memory.bytes[..<count])
    }

    /// The bytes after the last missing part, and after the last part with a corrected bit. Empty if the record's end
    /// is missing, or nothing is missing.
    var tail: UnsafeRawBufferPointer {
        guard let last = holes.last, hasEnd else { return UnsafeRawBufferPointer(rebasing: memory.bytes[..<0]) }
        return UnsafeRawBufferPointer(
            rebasing: memory.bytes[max(last.position, repaired.last?.range.upperBound ?? 0)...])
    }
}

/// A part of a log: a record, or bytes that belong to no known record.
enum LogUnit {
    case record(LogRecord)
    /// A hole that is not inside a partly readable record.
    case lost(LogHole)
}

/// Joins fragments to records.
struct LogAssembler {
    private let path: String
    private let byteCountMax: Int
    private(set) var units: [LogUnit] = []
    private var current: LogRecord?
    /// The number of bytes of all records in memory.
    private(set) var byteCount = 0

    init(path: String, byteCountMax: Int) { (self.path, self.byteCountMax) = (path, byteCountMax) }

    /// Reads all units of a file. Returns them, and the number of bytes of their records.
    static func units(of pieces: LogPieces, byteCountMax: Int) throws(SalvageError) -> (
        units: [LogUnit], byteCount: Int
    ) {
        var assembler = LogAssembler(path: "\(pieces.files.path)/\(pieces.name)", byteCountMax: byteCountMax)
        try pieces.read { (piece) throws(SalvageError) in try assembler.add(piece) }
        assembler.end()
        return (assembler.units, assembler.byteCount)
    }

    private mutating func add(_ piece: LogPieces.Piece) throws(SalvageError) {
        switch piece {
        case .bad(let hole): add(hole)
        case .repaired(let kind, let payload, let flip, let hole):
            guard isExpected(kind) else { return add(hole) }
            try add(.fragment(kind, payload, offset: hole.offset))
            // A fragment of these kinds has completed its record, so the record is now the last unit.
            if kind == .full || kind == .last {
                guard case .record(var record)? = units.popLast() else { return }
                Self.repair(&record, payload.count, flip, hole)
                units.append(.record(record))
            } else if var record = current {
                Self.repair(&record, payload.count, flip, hole)
                current = record
            }
        case .fragment(let kind, let payload, let offset):
            let begins = kind == .full || kind == .first
            if begins { endUnfinished(offset) }
            if current == nil {
                current = LogRecord(memory: try Memory(count: 0, path: path), offset: offset, hasHead: begins)
            }
            try append(payload)
            if kind == .full || kind == .last { complete() }
        }
    }

    /// Whether a corrected fragment of this kind fits here: *full* and *first* only between records, the other kinds
    /// only within a record. A corrected fragment that does not fit is treated as a hole.
    private func isExpected(_ kind: LogFragmentKind) -> Bool { (current == nil) == (kind == .full || kind == .first) }

    private static func repair(
        _ record: inout LogRecord, _ count: Int, _ flip: (offset: Int, mask: UInt8)?, _ hole: LogHole
    ) {
        let start = record.memory.count - count
        if let flip { record.memory.flip(flip.mask, at: start + flip.offset) }
        record.repaired.append((start..<record.memory.count, hole))
    }

    private mutating func append(_ payload: UnsafeRawBufferPointer) throws(SalvageError) {
        guard payload.count <= byteCountMax - byteCount else {
            throw SalvageError(.tooLarge, path: path, message: "the logs have more than \(byteCountMax) bytes")
        }
        byteCount += payload.count
        try current?.memory.append(payload, path: path)
    }

    private mutating func complete() {
        current?.hasEnd = true
        current?.memory.trim()
        end()
    }

    /// Adds the current record without its end, because another record begins. It is unknown where in the file the
    /// missing end was.
    private mutating func endUnfinished(_ offset: Int) {
        if let record = current, record.holes.last?.position != record.memory.count {
            let hole = LogHole(offset: offset, byteCount: 0, reason: "a record begins within another one")
            current?.holes.append((record.memory.count, hole))
        }
        end()
    }

    /// Adds the current record as it is.
    private mutating func end() { if let record = current.take() { units.append(.record(record)) } }

    private mutating func add(_ hole: LogHole) {
        guard var record = current else {
            if case .lost(var last)? = units.last, last.end == hole.offset {
                last.extend(by: hole)
                units[units.count - 1] = .lost(last)
            } else {
                units.append(.lost(hole))
            }
            return
        }
        if let last = record.holes.last, last.position == record.memory.count {
            record.holes[record.holes.count - 1].hole.extend(by: hole)
        } else {
            record.holes.append((record.memory.count, hole))
        }
        current = record
    }
}

/// The content of a manifest, up to its first damage.
struct ManifestContents {
    var scan = ManifestScan(number: 0)
    /// The locations of wrong bits that were corrected. The edits are used, because they are valid after the
    /// correction.
    var repaired: [LogHole] = []
    /// The damage at which reading stopped; nil if the whole file was read.
    var damage: LogHole?
    /// Whether the damage is only that the file ends within its last edit. LevelDB had not applied this edit yet.
    var isTorn = false

    static let comparator = "leveldb.BytewiseComparator"
    /// The maximum size of a manifest in bytes: 1 GiB. No valid manifest reaches this limit.
    private static let byteCountMax = 1 << 30

    /// Reads a manifest.
    init(_ pieces: LogPieces) throws(SalvageError) {
        let (units, _) = try LogAssembler.units(of: pieces, byteCountMax: Self.byteCountMax)
        for (index, unit) in units.enumerated() {
            switch unit {
            case .lost(let hole):
                damage = hole
                isTorn = hole.isTorn && index == units.count - 1
                return
            case .record(let record):
                guard record.isWhole else {
                    damage =
                        record.holes.first?.hole
                        ?? LogHole(
                            offset: record.offset, byteCount: pieces.byteCount - record.offset,
                            reason: "the file ends within an edit", isTorn: true)
                    isTorn = index == units.count - 1 && record.holes.allSatisfy { $0.hole.isTorn }
                    return
                }
                guard scan.apply(record.front) else {
                    damage = LogHole(
                        offset: record.offset, byteCount: record.memory.count, reason: "the record is not an edit")
                    return
                }
                repaired += record.repaired.map(\.hole)
            }
        }
    }
}
