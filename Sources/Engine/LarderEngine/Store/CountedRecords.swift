/// The numbers of a database's entries by state, at one instant.
package struct EntryNumbers: Hashable, Sendable {
    package var fresh = 0
    package var stale = 0
    /// All that take room: with those that are gone and were not removed yet.
    package var stored = 0

    mutating func add(_ state: Freshness, _ difference: Int) {
        stored += difference
        switch state {
        case .fresh: fresh += difference
        case .stale: stale += difference
        case .gone: break
        }
    }
}

/// How many of a store's records are in which state, as long as nothing is written to it. A value.
struct CountedRecords {
    /// The number of writes to the store before.
    let generation: UInt64
    let rules: FreshnessRules
    private(set) var total = 0
    private var fresh = CountedEnds()
    /// Fresh or stale.
    private var kept = CountedEnds()

    init(_ rules: FreshnessRules, at generation: UInt64) {
        self.generation = generation
        self.rules = rules
    }

    /// From then on the numbers are not known.
    var knownUntil: Int64 { min(fresh.knownUntil, kept.knownUntil) }

    mutating func add(_ record: UnsafeRawBufferPointer, now: Int64) {
        total += 1
        let header = try? RecordHeader.read(record, rules.purges).get()
        fresh.add(header.flatMap { rules.deadline($0) }, now: now)
        kept.add(header.flatMap { rules.end($0) }, now: now)
    }

    mutating func complete() {
        fresh.complete()
        kept.complete()
    }

    func numbers(now: Int64) -> EntryNumbers {
        let fresh = fresh.count(now: now)
        return EntryNumbers(fresh: fresh, stale: kept.count(now: now) - fresh, stored: total)
    }
}

/// How many of several instants are still to come, now and later. Remembers the nearest only. A value.
struct CountedEnds {
    /// The most instants that are remembered.
    private let nearestMax: Int
    /// Sorted when the count is complete.
    private var nearest: [Int64] = []
    /// The others.
    private var later = 0
    /// The nearest of the others: from then on the count is not known.
    private(set) var knownUntil = Int64.max

    init(nearestMax: Int = 1 << 14) { self.nearestMax = nearestMax }

    /// - Parameter end: nil for never.
    mutating func add(_ end: Int64?, now: Int64) {
        guard let end, end < knownUntil else {
            later += 1
            return
        }
        guard now < end else { return }
        nearest.append(end)
        if nearest.count >= 2 * nearestMax { forgetLater() }
    }

    mutating func complete() {
        if nearest.count > nearestMax { forgetLater() } else { nearest.sort() }
    }

    private mutating func forgetLater() {
        nearest.sort()
        knownUntil = nearest[nearestMax]
        later += nearest.count - nearestMax
        nearest.removeSubrange(nearestMax...)
    }

    func count(now: Int64) -> Int {
        var (low, high) = (0, nearest.count)
        while low < high {
            let middle = low + (high - low) / 2
            if nearest[middle] <= now { low = middle + 1 } else { high = middle }
        }
        return later + nearest.count - low
    }
}

extension RecordHeader {
    static func read(
        _ record: UnsafeRawBufferPointer, _ purges: TagPurges?
    ) -> Result<RecordHeader, RecordHeader.Defect> {
        Result { () throws(RecordHeader.Defect) in try RecordHeader(parsing: record, purges) }
    }
}

extension FreshnessRules {
    func state(_ header: Result<RecordHeader, RecordHeader.Defect>, now: Int64) -> Freshness {
        guard case .success(let header) = header else { return .fresh }
        return freshness(header, now: now)
    }
}
