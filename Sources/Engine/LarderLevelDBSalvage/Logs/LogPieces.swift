import LarderLevelDBFormat

/// A part of a file in LevelDB's log format that cannot be read.
struct LogHole {
    var offset: Int
    var byteCount: Int
    var reason: String
    /// The kind of the hole's only fragment, from its header; nil if unknown. The kind is known if only the fragment's
    /// checksum is wrong, and a valid fragment or the end of the block follows. Adjacent fragments of this sort, if
    /// their kind is `middle`, are one hole.
    var claim: LogFragmentKind? = nil
    /// The number of bytes of a record in the hole, without fragment headers; nil if unknown. Only correct if the hole
    /// is within one record.
    var payloadCount: Int? = nil
    /// Whether the hole looks like an interrupted write: the file ends within a fragment, or the rest of the block
    /// contains only zeros.
    var isTorn = false

    var end: Int { offset + byteCount }

    /// Extends the hole by another one, which directly follows it.
    mutating func extend(by other: LogHole) {
        if other.byteCount == 0 { return }
        if byteCount == 0 {
            self = other
            return
        }
        byteCount = other.end - offset
        payloadCount = payloadCount.flatMap { mine in other.payloadCount.map { mine + $0 } }
        claim = claim == .middle && other.claim == .middle ? .middle : nil
        isTorn = isTorn && other.isTorn
    }
}

/// Splits a file in LevelDB's log format, a log or a manifest, into fragments (see ``LogFragment``).
///
/// Fragments are expected directly after the previous fragment and at the beginning of a block, and nowhere else. A
/// search for valid checksums at all offsets would also find bytes inside values that look like fragments.
struct LogPieces {
    let files: SalvageFiles
    let name: String
    let byteCount: Int

    private static let chunkBlocks = 32

    enum Piece {
        /// A valid fragment. The bytes of its payload are valid only during the call.
        case fragment(LogFragmentKind, UnsafeRawBufferPointer, offset: Int)
        case bad(LogHole)
        /// A fragment with one wrong bit. `flip` is the bit of the payload to flip back; nil if the wrong bit is not in
        /// the payload. The hole must be reported if the fragment is not used.
        case repaired(LogFragmentKind, UnsafeRawBufferPointer, flip: (offset: Int, mask: UInt8)?, LogHole)
    }

    /// Calls `body` with all fragments and holes in the order of the file.
    func read(_ body: (Piece) throws(SalvageError) -> Void) throws(SalvageError) {
        let chunk = try Memory(count: min(byteCount, LogFragment.blockBytes * Self.chunkBlocks), path: files.path)
        var offset = 0
        while offset < byteCount {
            let count = min(chunk.count, byteCount - offset)
            let target = UnsafeMutableRawBufferPointer(start: chunk.start, count: count)
            let isRead = try files.read(name, at: offset, into: target) == nil
            var start = 0
            while start < count {
                let length = min(LogFragment.blockBytes, count - start)
                let block = UnsafeMutableRawBufferPointer(rebasing: target[start..<(start + length)])
                try parse(block, at: offset + start, isRead: isRead, body)
                start += length
            }
            offset += count
        }
    }

    private func parse(
        _ memory: UnsafeMutableRawBufferPointer, at offset: Int, isRead: Bool,
        _ body: (Piece) throws(SalvageError) -> Void
    ) throws(SalvageError) {
        if !isRead, let reason = try files.read(name, at: offset, into: memory) {
            return try body(
                .bad(
                    LogHole(
                        offset: offset, byteCount: memory.count, reason: reason,
                        payloadCount: Self.payload(of: memory.count), isTorn: false)))
        }
        let block = LogBlock(bytes: UnsafeRawBufferPointer(memory), offset: offset)
        var position = 0
        while let (piece, next) = block.piece(at: position) {
            try body(piece)
            position = next
        }
    }

    static func payload(of blockCount: Int) -> Int? {
        blockCount == LogFragment.blockBytes ? blockCount - LogFragment.headerBytes : nil
    }
}

struct LogBlock {
    let bytes: UnsafeRawBufferPointer
    /// The offset of the block in the file.
    let offset: Int

    private var isWhole: Bool { bytes.count == LogFragment.blockBytes }

    /// Returns the piece that begins here, and the position of the next piece; nil at the block's end.
    func piece(at position: Int) -> (LogPieces.Piece, next: Int)? {
        let rest = bytes.count - position
        guard rest > 0 else { return nil }
        guard let header = LogFragment(bytes, at: position) else {
            // The rest of a full block is unused if it is shorter than a header.
            return isWhole ? nil : bad(position, bytes.count, "the file ends within a header", isTorn: true)
        }
        let end = position + LogFragment.headerBytes + header.length
        guard end <= bytes.count else {
            return repaired(header, position)
                ?? bad(position, bytes.count, "a length beyond the block", isTorn: !isWhole)
        }
        if header.kind == 0, header.length == 0 {
            let isZero = bytes[position...].allSatisfy { $0 == 0 }
            return bad(position, bytes.count, "zeros instead of a record", isTorn: isZero)
        }
        if let kind = LogFragmentKind(rawValue: header.kind), header.isValid(in: bytes, at: position) {
            let payload = UnsafeRawBufferPointer(rebasing: bytes[(position + LogFragment.headerBytes)..<end])
            return (.fragment(kind, payload, offset: offset + position), end)
        }
        if let repaired = repaired(header, position) { return repaired }
        guard isFollowedByValidFragment(end) else {
            return bad(position, bytes.count, "checksum mismatch", isTorn: false)
        }
        return badFragment(header, position, end)
    }

    /// Returns the fragment if only one bit of it is wrong, and a valid fragment or the end of the block follows;
    /// otherwise nil.
    private func repaired(_ header: LogFragment, _ position: Int) -> (LogPieces.Piece, next: Int)? {
        let start = position + LogFragment.headerBytes
        for bit in 0..<16 {
            let length = header.length ^ 1 << bit
            guard start + length <= bytes.count, let kind = LogFragmentKind(rawValue: header.kind) else { continue }
            let other = LogFragment(checksum: header.checksum, length: length, kind: header.kind)
            if other.isValid(in: bytes, at: position), isFollowedByValidFragment(start + length) {
                return repaired(kind, position, start + length, nil)
            }
        }
        let end = start + header.length
        guard end <= bytes.count, isFollowedByValidFragment(end) else { return nil }
        let checked = UnsafeRawBufferPointer(rebasing: bytes[(start - 1)..<end])
        switch BitFlip.place(stored: header.checksum, checked) {
        case nil: return nil
        case .checksum: return LogFragmentKind(rawValue: header.kind).flatMap { repaired($0, position, end, nil) }
        case .bytes(0, let mask):
            return LogFragmentKind(rawValue: header.kind ^ mask).flatMap { repaired($0, position, end, nil) }
        case .bytes(let offset, let mask):
            return LogFragmentKind(rawValue: header.kind).flatMap {
                repaired($0, position, end, (offset: offset - 1, mask: mask))
            }
        }
    }

    private func repaired(
        _ kind: LogFragmentKind, _ position: Int, _ end: Int, _ flip: (offset: Int, mask: UInt8)?
    ) -> (LogPieces.Piece, next: Int)? {
        // A middle fragment must fill its whole block.
        if kind == .middle, position != 0 || end != bytes.count || !isWhole { return nil }
        let start = position + LogFragment.headerBytes
        let hole = LogHole(
            offset: offset + position, byteCount: end - position, reason: "a flipped bit", claim: kind,
            payloadCount: end - start, isTorn: false)
        return (.repaired(kind, UnsafeRawBufferPointer(rebasing: bytes[start..<end]), flip: flip, hole), end)
    }

    /// Whether a valid fragment begins at this position, or the block ends here.
    private func isFollowedByValidFragment(_ position: Int) -> Bool {
        guard let header = LogFragment(bytes, at: position) else { return isWhole || position == bytes.count }
        return LogFragmentKind(rawValue: header.kind) != nil
            && position + LogFragment.headerBytes + header.length <= bytes.count
            && header.isValid(in: bytes, at: position)
    }

    private func badFragment(_ header: LogFragment, _ position: Int, _ end: Int) -> (LogPieces.Piece, next: Int) {
        var claim = LogFragmentKind(rawValue: header.kind)
        // A middle fragment must fill its whole block. If this one does not, its kind cannot be trusted.
        if claim == .middle, position != 0 || !isWhole || end != bytes.count { claim = nil }
        let hole = LogHole(
            offset: offset + position, byteCount: end - position, reason: "checksum mismatch", claim: claim,
            payloadCount: claim == .middle || position == 0 && end == bytes.count ? header.length : nil, isTorn: false)
        return (.bad(hole), end)
    }

    private func bad(_ position: Int, _ end: Int, _ reason: String, isTorn: Bool) -> (LogPieces.Piece, next: Int) {
        let hole = LogHole(
            offset: offset + position, byteCount: end - position, reason: reason, claim: nil,
            payloadCount: position == 0 ? LogPieces.payload(of: end) : nil, isTorn: isTorn)
        return (.bad(hole), end)
    }
}
