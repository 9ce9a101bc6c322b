/// Finds the end of a log. A record that was only partly written when the machine stopped is not damage.
enum LogTail {
    /// - Parameters:
    ///   - synced: the number of bytes known to be synced; nil if unknown.
    ///   - isNewest: whether no later log exists.
    /// - Returns: the valid units, and the offset at which the log was cut off; nil if it was not cut off.
    static func cut(_ units: [LogUnit], byteCount: Int, synced: Int?, isNewest: Bool) -> (units: [LogUnit], at: Int?) {
        guard let synced else { return isNewest ? cutTorn(units, byteCount: byteCount) : (units, nil) }
        for (index, unit) in units.enumerated() {
            guard let bad = firstBad(unit, byteCount: byteCount), bad >= synced else { continue }
            return (Array(units[..<index]), start(of: unit))
        }
        guard byteCount < synced else { return (units, nil) }
        let hole = LogHole(
            offset: byteCount, byteCount: synced - byteCount, reason: "the file is cut short", claim: nil,
            payloadCount: nil, isTorn: false)
        return (units + [.lost(hole)], nil)
    }

    /// For an unknown synced length. Cuts off only a part that looks torn and is the last part of the file.
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

    /// The offset of the first invalid byte; nil if all bytes are valid.
    private static func firstBad(_ unit: LogUnit, byteCount: Int) -> Int? {
        switch unit {
        case .lost(let hole): return hole.offset
        case .record(let record):
            if let hole = record.holes.first?.hole { return hole.offset }
            if !record.hasHead { return record.offset }
            return record.hasEnd ? nil : byteCount
        }
    }

    private static func start(of unit: LogUnit) -> Int {
        switch unit {
        case .lost(let hole): hole.offset
        case .record(let record): record.offset
        }
    }
}
