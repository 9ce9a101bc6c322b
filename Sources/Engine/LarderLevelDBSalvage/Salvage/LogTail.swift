extension LogUnit {
    /// Removes an incomplete write from the end of a log: a record that was only partly written when the machine failed
    /// is not damage. Damage stays in the returned units (records and holes).
    /// - Parameters:
    ///   - synced: the number of bytes known to be synced; nil if unknown.
    ///   - isNewest: whether no later log with content exists.
    /// - Returns: the remaining units, and the offset at which the log was cut off; nil if it was not cut off.
    static func cut(_ units: [LogUnit], byteCount: Int, synced: Int?, isNewest: Bool) -> (units: [LogUnit], at: Int?) {
        guard let synced else { return isNewest ? cutTorn(units, byteCount: byteCount) : (units, nil) }
        for (index, unit) in units.enumerated() {
            guard let bad = unit.firstBad(byteCount: byteCount), bad >= synced else { continue }
            return (Array(units[..<index]), unit.start)
        }
        guard byteCount < synced else { return (units, nil) }
        let hole = LogHole(
            offset: byteCount, byteCount: synced - byteCount, reason: "the file is cut short")
        return (units + [.lost(hole)], nil)
    }

    /// Removes an incomplete write from the end of a log whose synced length is unknown. Cuts off at most the last part
    /// of the file, if the file ends within this part or the part contains only zeros.
    private static func cutTorn(_ units: [LogUnit], byteCount: Int) -> (units: [LogUnit], at: Int?) {
        var kept = units
        var place: Int?
        if case .lost(let hole)? = kept.last, hole.isTorn {
            place = hole.offset
            kept.removeLast()
        }
        if case .record(let record)? = kept.last, !record.hasEnd, record.hasHead,
            record.holes.allSatisfy({ $0.hole.isTorn && $0.position == record.memory.count })
        {
            place = record.offset
            kept.removeLast()
        }
        return (kept, place)
    }

    /// Returns the offset of the first invalid byte; nil if all bytes are valid.
    private func firstBad(byteCount: Int) -> Int? {
        switch self {
        case .lost(let hole): return hole.offset
        case .record(let record):
            if let hole = record.holes.first?.hole { return hole.offset }
            if !record.hasHead { return record.offset }
            return record.hasEnd ? nil : byteCount
        }
    }

    private var start: Int {
        switch self {
        case .lost(let hole): hole.offset
        case .record(let record): record.offset
        }
    }
}
