/// The readable part of a log record.
struct LogRecord {
    /// Its readable bytes, without the missing ones in between.
    let memory: Memory
    /// The offset in the file of its beginning, or of its first readable part.
    let offset: Int
    /// The positions of the missing parts in `memory`.
    var holes: [(position: Int, hole: LogHole)] = []
    /// Parts of `memory` in which one bit was flipped back: their places there and in the file. Their keys are used,
    /// their values are not.
    var mended: [(range: Range<Int>, hole: LogHole)] = []
    /// False if the beginning is missing.
    let hasHead: Bool
    /// False if the end is missing.
    var hasEnd = false

    var isWhole: Bool { hasHead && hasEnd && holes.isEmpty }

    /// The part before the first missing one; empty if the beginning is missing. If parts are missing, the mended ones
    /// count as missing too.
    var front: UnsafeRawBufferPointer {
        guard hasHead else { return UnsafeRawBufferPointer(rebasing: memory.bytes[..<0]) }
        if holes.isEmpty, hasEnd { return memory.bytes }
        let count = min(holes.first?.position ?? memory.count, mended.first?.range.lowerBound ?? memory.count)
        return UnsafeRawBufferPointer(rebasing: memory.bytes[..<count])
    }

    /// The bytes after the last missing part.
    var tail: UnsafeRawBufferPointer {
        guard let last = holes.last, hasEnd else { return UnsafeRawBufferPointer(rebasing: memory.bytes[..<0]) }
        return UnsafeRawBufferPointer(rebasing: memory.bytes[max(last.position, mended.last?.range.upperBound ?? 0)...])
    }
}

/// A part of a log.
enum LogUnit {
    case record(LogRecord)
    /// A hole outside of every readable record.
    case lost(LogHole)
}

/// Assembles fragments to records.
struct LogAssembler {
    private let path: String
    private let byteCountMax: Int
    private(set) var units: [LogUnit] = []
    private var current: LogRecord?
    /// The number of bytes kept.
    private(set) var byteCount = 0

    init(path: String, byteCountMax: Int) {
        self.path = path
        self.byteCountMax = byteCountMax
    }

    /// All units of a file.
    static func units(of pieces: LogPieces, byteCountMax: Int) throws(SalvageError) -> (
        units: [LogUnit], byteCount: Int
    ) {
        var assembler = LogAssembler(path: "\(pieces.files.path)/\(pieces.name)", byteCountMax: byteCountMax)
        try pieces.read { (piece) throws(SalvageError) in try assembler.add(piece) }
        assembler.finish()
        return (assembler.units, assembler.byteCount)
    }

    private mutating func add(_ piece: LogPieces.Piece) throws(SalvageError) {
        switch piece {
        case .bad(let hole): add(hole)
        case .mended(let kind, let payload, let flip, let hole):
            guard isExpected(kind) else { return add(hole) }
            try add(.fragment(kind, payload, offset: hole.offset))
            // It ends the record that it belongs to, unless that had ended.
            if kind == .full || kind == .last {
                guard case .record(var record)? = units.popLast() else { return }
                Self.mend(&record, payload.count, flip, hole)
                units.append(.record(record))
            } else if var record = current {
                Self.mend(&record, payload.count, flip, hole)
                current = record
            }
        case .fragment(.full, let payload, let offset):
            endUnfinished(offset)
            try begin(payload, offset, hasHead: true)
            complete()
        case .fragment(.first, let payload, let offset):
            endUnfinished(offset)
            try begin(payload, offset, hasHead: true)
        case .fragment(.middle, let payload, let offset): try goOn(payload, offset)
        case .fragment(.last, let payload, let offset):
            try goOn(payload, offset)
            complete()
        }
    }

    /// Whether such a fragment can follow. A mended fragment is no reason to doubt an undamaged one.
    private func isExpected(_ kind: LogFragmentKind) -> Bool {
        (current == nil) == (kind == .full || kind == .first)
    }

    private static func mend(
        _ record: inout LogRecord, _ count: Int, _ flip: (offset: Int, mask: UInt8)?, _ hole: LogHole
    ) {
        let start = record.memory.count - count
        if let flip { record.memory.flip(flip.mask, at: start + flip.offset) }
        record.mended.append((start..<record.memory.count, hole))
    }

    private mutating func begin(_ payload: UnsafeRawBufferPointer, _ offset: Int, hasHead: Bool) throws(SalvageError) {
        current = LogRecord(memory: try Memory(count: 0, path: path), offset: offset, hasHead: hasHead)
        try append(payload)
    }

    private mutating func goOn(_ payload: UnsafeRawBufferPointer, _ offset: Int) throws(SalvageError) {
        if current == nil {
            try begin(payload, offset, hasHead: false)
        } else {
            try append(payload)
        }
    }

    private mutating func append(_ payload: UnsafeRawBufferPointer) throws(SalvageError) {
        guard payload.count <= byteCountMax - byteCount else {
            throw SalvageError(.tooLarge, path: path, message: "the logs have more than \(byteCountMax) bytes")
        }
        byteCount += payload.count
        try current?.memory.append(payload, path: path)
    }

    private mutating func complete() {
        guard var record = current else { return }
        record.hasEnd = true
        record.memory.trim()
        units.append(.record(record))
        current = nil
    }

    /// A record begins before the previous one has ended: the missing part has no place of its own.
    private mutating func endUnfinished(_ offset: Int) {
        guard var record = current else { return }
        if record.holes.last?.position != record.memory.count {
            let hole = LogHole(
                offset: offset, byteCount: 0, reason: "a record begins within another one", claim: nil,
                payloadCount: nil, isTorn: false)
            record.holes.append((record.memory.count, hole))
        }
        units.append(.record(record))
        current = nil
    }

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

    /// The file ends. An unfinished record stays without an end.
    private mutating func finish() {
        guard let record = current else { return }
        units.append(.record(record))
        current = nil
    }
}
