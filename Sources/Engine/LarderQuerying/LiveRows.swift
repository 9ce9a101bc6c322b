import LarderQueries

/// The result of a live query: its rows in order, and some rows that follow them.
///
/// The texts are kept, because the present text of an entry may be a later one, which does not match, or has another
/// position: its change was not applied yet.
///
/// The rows that follow (the *reserve*) replace rows that leave. Without a reserve, the query must run again
/// (``needsRun``).
struct LiveRows {
    struct Row {
        let position: QueryPosition
        var expires: Int64?
        /// Nil if the query has KEYS.
        var text: [UInt8]?

        var key: [UInt8] { position.key }

        /// The approximate size of the row, with its places in tables.
        var byteCount: Int {
            position.values.reduce(key.count + (text?.count ?? 0) + 192) { sum, value in
                if case .text(let text) = value { sum + text.count + 64 } else { sum + 32 }
            }
        }
    }

    /// A change of the result. Those of one call apply one after the other.
    enum Step: Equatable {
        /// The row is not kept any more, unless it was added again.
        case forgotten(key: [UInt8])
        case out(key: [UInt8], LiveReason)
        /// The row is removed, if it was in the result, and inserted at the index.
        case set(key: [UInt8], index: Int)
    }

    let order: QueryOrder
    /// The result has the rows at these indexes.
    private let window: Range<Int>
    /// All matching entries up to the last of these rows, in order.
    private var rows: [QueryPosition] = []
    private var kept: [[UInt8]: Row] = [:]
    /// The approximate size of all kept rows.
    private(set) var byteCount = 0
    /// Whether other matching entries may follow.
    private var isCut = false

    init(_ order: QueryOrder, skip: Int, limit: Int) {
        self.order = order
        window = skip..<(skip + limit)
    }

    /// How many rows are kept.
    var capacity: Int { 2 * window.upperBound + 32 }
    /// Whether the result may lack rows.
    var needsRun: Bool { isCut && rows.count < window.upperBound }
    /// All kept rows, in any order.
    var all: some Collection<Row> { kept.values }
    /// The keys of the result, in order.
    var visible: [[UInt8]] { rows[window.clamped(to: 0..<rows.count)].map(\.key) }

    func contains(_ key: [UInt8]) -> Bool { kept[key] != nil }

    func text(_ key: [UInt8]) -> [UInt8]? { kept[key]?.text }

    private mutating func keep(_ row: Row) {
        byteCount += row.byteCount - (kept.updateValue(row, forKey: row.key)?.byteCount ?? 0)
    }

    @discardableResult
    private mutating func drop(_ key: [UInt8]) -> QueryPosition? {
        guard let row = kept.removeValue(forKey: key) else { return nil }
        byteCount -= row.byteCount
        return row.position
    }

    /// Replaces all rows by those of a run.
    mutating func replace(_ found: [Row], isCut: Bool) {
        (rows, self.isCut) = (found.map(\.position), isCut)
        (kept, byteCount) = ([:], 0)
        for row in found { keep(row) }
    }

    /// Adds the rows of a run that were not known. Rows that the run has not found have changed meanwhile, and their
    /// changes follow.
    mutating func refill(_ found: [Row], isCut: Bool) -> [Step] {
        var steps: [Step] = []
        self.isCut = false
        for row in found where kept[row.key] == nil { insert(row, &steps) }
        self.isCut = self.isCut || isCut
        while isCut, let end = found.last?.position, let last = rows.last, order.precedes(end, last) {
            remove(last.key, .moved, &steps)
        }
        return steps
    }

    /// Takes the new row of an entry; nil if it does not match, or is gone.
    /// - Parameter isStored: whether an entry may have been stored whose text is not kept.
    mutating func update(_ key: [UInt8], _ row: Row?, _ reason: LiveReason, isStored: Bool) -> [Step] {
        var steps: [Step] = []
        guard let row else {
            if kept[key] != nil { remove(key, reason, &steps) }
            return steps
        }
        guard let known = kept[key] else {
            insert(row, &steps)
            return steps
        }
        let (old, position) = (known.position, row.position)
        if old == position, row.text == nil ? !isStored : row.text == known.text {
            kept[key]?.expires = row.expires
            return steps
        }
        if old == position {
            keep(row)
            let index = index(of: position)
            if window.contains(index) { steps.append(.set(key: key, index: index - window.lowerBound)) }
            return steps
        }
        let from = index(of: old)
        rows.remove(at: from)
        let to = index(of: position)
        if isCut, to == rows.count {
            // Entries that are not known may precede it.
            rows.insert(old, at: from)
            remove(key, .moved, &steps)
        } else if part(from) == part(to) {
            rows.insert(position, at: to)
            keep(row)
            if window.contains(to) { steps.append(.set(key: key, index: to - window.lowerBound)) }
        } else {
            rows.insert(old, at: from)
            remove(key, .moved, &steps)
            insert(row, &steps)
        }
        return steps
    }

    /// Whether an index is before (0), in (1) or after (2) the result.
    private func part(_ index: Int) -> Int { index < window.lowerBound ? 0 : index < window.upperBound ? 1 : 2 }

    /// The index of a row, or the one at which it would be inserted.
    private func index(of position: QueryPosition) -> Int {
        rows.partitioningIndex { !order.precedes($0, position) }
    }

    private mutating func remove(_ key: [UInt8], _ reason: LiveReason, _ steps: inout [Step]) {
        guard let position = drop(key) else { return }
        let index = index(of: position)
        rows.remove(at: index)
        steps.append(.forgotten(key: key))
        guard index < window.upperBound else { return }
        if index >= window.lowerBound {
            steps.append(.out(key: key, reason))
        } else if rows.count >= window.lowerBound {
            // The first row of the result now precedes it.
            steps.append(.out(key: rows[window.lowerBound - 1].key, .moved))
        } else {
            return
        }
        if rows.count >= window.upperBound {
            steps.append(.set(key: rows[window.upperBound - 1].key, index: window.count - 1))
        }
    }

    private mutating func insert(_ row: Row, _ steps: inout [Step]) {
        let index = index(of: row.position)
        if isCut, index == rows.count { return }
        rows.insert(row.position, at: index)
        keep(row)
        if index < window.upperBound {
            if rows.count > window.upperBound { steps.append(.out(key: rows[window.upperBound].key, .moved)) }
            if index >= window.lowerBound {
                steps.append(.set(key: row.key, index: index - window.lowerBound))
            } else if rows.count > window.lowerBound {
                steps.append(.set(key: rows[window.lowerBound].key, index: 0))
            }
        }
        if rows.count > capacity {
            let last = rows.removeLast().key
            drop(last)
            steps.append(.forgotten(key: last))
            isCut = true
        }
    }
}
